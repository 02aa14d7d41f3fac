/** Text that is made page by page, as a stream of its UTF-8: the next page is made when the reader wants it. */
import { utf8 } from "../prompt/text.ts";

export function textStream(pages: AsyncGenerator<string, undefined>): ReadableStream<Uint8Array> {
  return new ReadableStream({
    type: "bytes",
    async pull(controller) {
      for (;;) {
        const { done, value } = await pages.next();
        if (value === "") continue; // a byte stream takes no empty chunk
        if (!done) return controller.enqueue(utf8(value));
        controller.close();
        controller.byobRequest?.respond(0);
        return;
      }
    },
  });
}
