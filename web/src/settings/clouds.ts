// Cloud providers: their base URL depends on a region, and their credentials may have several fields.

interface Cloud {
  /** region returns the region in a base URL; "" if there is none. */
  region(base: string): string;
  base(region: string): string;
  example: string;
}

const part = (pattern: RegExp) => (base: string) => pattern.exec(base)?.slice(1).find(Boolean) ?? "";

export const clouds: Record<string, Cloud> = {
  bedrock: {
    region: part(/^https:\/\/bedrock-runtime(?:-fips)?\.([a-z0-9-]+)\.amazonaws\.com\/?$/),
    base: (region) => (region ? `https://bedrock-runtime.${region}.amazonaws.com` : ""),
    example: "us-east-1",
  },
  vertexai: {
    region: part(/^https:\/\/(?:([a-z0-9-]+)-aiplatform|aiplatform\.([a-z]+)\.rep)\.googleapis\.com\/?$/),
    base: (region) => {
      if (!region || region === "global") return "";
      return ["us", "eu"].includes(region)
        ? `https://aiplatform.${region}.rep.googleapis.com`
        : `https://${region}-aiplatform.googleapis.com`;
    },
    example: "global",
  },
};

/** awsKey formats AWS credentials for the API; undefined while they are incomplete. */
export function awsKey(id: string, secret: string, session: string): string | undefined {
  if (!id.trim() || !secret.trim()) return undefined;
  return JSON.stringify({
    access_key_id: id.trim(),
    secret_access_key: secret.trim(),
    ...(session.trim() ? { session_token: session.trim() } : {}),
  });
}
