import { describe, expect, it } from "vitest";

import { blank, config, mask, path, rows } from "./mcp";

const stored = {
  shttp_servers: [{ url: "https://a.example/mcp", api_key: mask, timeout: 30 }],
  sse_servers: [{ url: "https://b.example/sse", api_key: null }],
  stdio_servers: [{ name: "files", command: "mcp-files", args: ["--root", "/my work"], env: { TOKEN: mask, MODE: "a=b" } }],
};

describe("rows and config", () => {
  it("change nothing on the way there and back, masks included", () => {
    expect(config(rows(stored))).toEqual(stored);
  });

  it("take the short forms", () => {
    const short = { sse_servers: ["https://c.example"], stdio_servers: [{ name: "x", command: "y", args: "-v", env: "A=1,B=2" }] };
    expect(config(rows(short))).toEqual({
      shttp_servers: [],
      sse_servers: [{ url: "https://c.example", api_key: null }],
      stdio_servers: [{ name: "x", command: "y", args: ["-v"], env: { A: "1", B: "2" } }],
    });
  });

  it("are empty for settings without servers", () => {
    expect(rows(null)).toEqual([]);
    expect(config([])).toEqual({ shttp_servers: [], sse_servers: [], stdio_servers: [] });
  });

  it("send a key that was removed as none", () => {
    const [first, ...rest] = rows(stored);
    expect(config([{ ...first!, apiKey: "" }, ...rest]).shttp_servers).toEqual([
      { url: "https://a.example/mcp", api_key: null, timeout: 30 },
    ]);
  });

  it("send what is no number as it is", () => {
    expect(config([{ ...blank("shttp"), url: "https://a", timeout: "soon" }]).shttp_servers).toEqual([
      { url: "https://a", api_key: null, timeout: "soon" },
    ]);
  });
});

describe("path", () => {
  it("counts within the kind", () => {
    const list = [blank("sse"), blank("stdio"), blank("sse")];
    expect(path(list, list[2]!)).toBe("sse_servers.1");
    expect(path(list, list[1]!)).toBe("stdio_servers.0");
  });
});
