/** A process that verifies one log and says how long that took and what memory it needed: nothing else is in it. */
import { isProven, verifyLog } from "../../../src/replay/verify.ts";
import { openFile } from "../replay/file-source.ts";
import { keepHeapSmall } from "../replay/small-heap.ts";

keepHeapSmall();

const file = openFile(process.argv[2]!);
const began = performance.now();
const result = verifyLog(file);
const ms = performance.now() - began;
file.close();
const requests = result.ok && isProven(result.value) ? result.value.requests : null;
console.log(JSON.stringify({ ms, requests, peak: process.resourceUsage().maxRSS * 1024 }));
