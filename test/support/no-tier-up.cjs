/**
 * Keeps V8 from compiling the HTTP parser (WebAssembly) a second time, for speed: that is a fifth of all the processor time
 * of a daemon that lives as long as a test does. The budget is changed while a module is made and then has its default again,
 * because V8 takes no compiled code that was kept under other flags. The default is that of Node 20.
 */
"use strict";
const { setFlagsFromString } = require("node:v8");

const { Module } = WebAssembly;
if (process.versions.v8.startsWith("11.3.")) {
  WebAssembly.Module = class extends Module {
    constructor(bytes) {
      setFlagsFromString("--wasm-tiering-budget=2000000000");
      super(bytes);
      setFlagsFromString("--wasm-tiering-budget=1800000");
    }
  };
}
