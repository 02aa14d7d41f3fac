/** Who the agent is in a session. Lives in structured state only; nothing is ever read out of prose. */
import { z } from "zod";
import { MAX_ID_LENGTH, MAX_IDENTITY_NAME_LENGTH } from "../limits.ts";

export const IDENTITY_VERSION = 1;

export interface Identity {
  version: typeof IDENTITY_VERSION;
  id: string;
  name: string;
  /** `explicit`: the caller named the id. `generated`: made here. `restored`: came with an imported history. */
  source: "explicit" | "generated" | "restored";
}

export const IdentityId = z
  .string()
  .max(MAX_ID_LENGTH, `at most ${MAX_ID_LENGTH} characters`)
  .regex(/^[A-Za-z0-9][A-Za-z0-9._:-]*$/, "letters, digits and . _ : - only, beginning with a letter or digit");

export const IdentityName = z
  .string()
  .refine((name) => name.trim() !== "", "must not be blank")
  .refine((name) => [...name].length <= MAX_IDENTITY_NAME_LENGTH, `at most ${MAX_IDENTITY_NAME_LENGTH} characters`);

/** What a caller may say about the identity of a new session. */
export interface IdentityInput {
  id?: string | undefined;
  name?: string | undefined;
}

/** The identity of a new session: the caller's, completed by the agent's name and a generated id. */
export function createIdentity(input: IdentityInput | undefined, agentName: string, generatedId: string): Identity {
  const name = input?.name ?? agentName;
  return input?.id === undefined
    ? { version: IDENTITY_VERSION, id: generatedId, name, source: "generated" }
    : { version: IDENTITY_VERSION, id: input.id, name, source: "explicit" };
}

/** Whether what a caller asserts contradicts the identity a session has. */
export function conflicts(identity: Identity, asserted: IdentityInput | undefined): boolean {
  if (asserted === undefined) return false;
  return (
    (asserted.id !== undefined && asserted.id !== identity.id) ||
    (asserted.name !== undefined && asserted.name !== identity.name)
  );
}
