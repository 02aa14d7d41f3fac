/** Starts the fake provider for the tests that run inside workerd; they reach and script it by its URL. */
import type { TestProject } from "vitest/node";
import { startProvider } from "./provider.ts";

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const provider = await startProvider();
  project.provide("providerUrl", provider.url);
  return () => provider.close();
}

declare module "vitest" {
  interface ProvidedContext {
    providerUrl: string;
  }
}
