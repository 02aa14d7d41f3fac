/** Starts what the tests inside workerd reach over loopback: the fake model provider and the prompt hooks. */
import type { TestProject } from "vitest/node";
import { startHookServer } from "./hook-server.ts";
import { startProvider } from "./provider.ts";

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const provider = await startProvider();
  const hooks = await startHookServer();
  project.provide("providerUrl", provider.url);
  project.provide("hookUrl", hooks.url);
  return async () => {
    await provider.close();
    await hooks.close();
  };
}

declare module "vitest" {
  interface ProvidedContext {
    providerUrl: string;
    hookUrl: string;
  }
}
