/** The pool alone: undici's index loads all of it, fetch and WebSockets and caches too. */
declare module "undici/lib/dispatcher/pool.js" {
  export { Pool as default } from "undici";
}
