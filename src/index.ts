import { createApp } from "./http/app.ts";

export { DirectoryObject } from "./directory/object.ts";
export { SessionObject } from "./session/object.ts";

export default createApp();
