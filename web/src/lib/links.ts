/** web is an address that may be linked to, if it is one of the web: others come from strangers as well, and run or load something. */
export const web = (url: string) => (/^https?:\/\//i.test(url) ? url : undefined);
