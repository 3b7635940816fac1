// The ports of a sandbox, each with the address that leads to it, if one does.

export interface Served {
  port: number;
  url?: string;
}

export function served(ports: number[], hosts: Record<string, number>): Served[] {
  const all = new Map<number, Served>(ports.map((port) => [port, { port }]));
  for (const [url, port] of Object.entries(hosts)) all.set(port, { port, url });
  return [...all.values()].sort((a, b) => a.port - b.port);
}
