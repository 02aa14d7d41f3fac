/** A tenant's directory as others ask it: every call has a time limit, and every failure is a value. */
import { fail, type Result } from "../errors.ts";
import { STORAGE_RETRY_AFTER_SECONDS } from "../limits.ts";
import type { DirectoryObject } from "./object.ts";

export class DirectoryClient {
  readonly #namespace: DurableObjectNamespace<DirectoryObject>;

  constructor(namespace: DurableObjectNamespace<DirectoryObject>) {
    this.#namespace = namespace;
  }

  /** Runs one call within `ms`. What comes later is dropped; a change may have happened all the same. */
  async ask<T>(
    tenant: string,
    ms: number,
    call: (directory: DurableObjectStub<DirectoryObject>) => Promise<Result<T>>,
  ): Promise<Result<T>> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<Result<T>>((resolve) => {
      timer = setTimeout(() => resolve(directoryUnavailable()), ms);
    });
    try {
      // A stub that has failed once fails for good: a new one each time.
      return await Promise.race([call(this.#namespace.getByName(tenant)), late]);
    } catch (error) {
      console.error("the directory failed:", error);
      return directoryUnavailable();
    } finally {
      clearTimeout(timer);
    }
  }
}

/** What a caller is told when a tenant's directory cannot be read or written. */
export function directoryUnavailable() {
  return fail("storage_unavailable", "The tenant's directory is not available; try again.", {
    retryAfter: STORAGE_RETRY_AFTER_SECONDS,
  });
}
