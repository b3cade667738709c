/** Starts one server for all workers of Vitest and Jest; returns a function that stops it. */
declare function setUp(): Promise<() => Promise<void>>;
export = setUp;
