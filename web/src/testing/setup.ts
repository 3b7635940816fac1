// Runs before each file of tests: the client of the API keeps the fetch that it finds when it is loaded.
if (typeof document !== "undefined") await import("./page");

export {};
