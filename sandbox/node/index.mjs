export { SandboxError, newProject, sandboxed, startSandbox } from "./index.js";
