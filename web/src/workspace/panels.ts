// The panels of a workspace, in their order.

export const panels = {
  changes: "branch",
  files: "folder",
  terminal: "terminal",
  browser: "globe",
  ports: "plug",
  network: "list",
} as const;

export type Panel = keyof typeof panels;
