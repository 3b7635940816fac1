/** nextTask continues in a new task, so that the browser can draw and handle input first. */
export const nextTask = () => new Promise<void>((done) => setTimeout(done));
