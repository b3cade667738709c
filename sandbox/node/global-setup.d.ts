/** Starts one server for all workers of Vitest and Jest; returns what stops it. */
declare function setUp(): Promise<() => Promise<void>>;
export = setUp;
