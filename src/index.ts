import { createApp } from "./http/app.ts";

export { SessionObject } from "./session/object.ts";

export default createApp();
