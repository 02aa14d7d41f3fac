/** The bindings tests see through `cloudflare:workers`. */
declare namespace Cloudflare {
  interface Env extends ServiceEnv {}
  interface GlobalProps {
    mainModule: typeof import("../src/index.ts");
  }
}
type ServiceEnv = import("../src/http/env.ts").Env;
