/** breathe lets the browser draw and listen before the work goes on. */
export const breathe = () => new Promise<void>((done) => setTimeout(done));
