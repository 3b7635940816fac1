// What goes with a task: images are part of the message, other files go into the workspace.
import { imageLimits, isImage } from "../lib/images";
import { unique } from "../lib/unique";

/** One thing that goes along, with its content as a data: address. */
export interface Attachment {
  id: string;
  name: string;
  /** Bytes. */
  size: number;
  image: boolean;
  url: string;
}

/** Why a file is not taken; the words are the page's. */
export type Refusal = "image.large" | "images.many" | "images.heavy" | "files.heavy" | "unreadable";

// The server's own limits for a request and for an upload. What would be refused there is refused here,
// before it is sent.
export const limits = { inline: 15 << 20, files: 100 << 20 };

/** refuse says why a file cannot go along with those that do, if so. */
export function refuse(file: { size: number; type: string }, have: Attachment[]): Refusal | undefined {
  if (!isImage(file.type)) {
    return total(have.filter((a) => !a.image)) + file.size > limits.files ? "files.heavy" : undefined;
  }
  const images = have.filter((a) => a.image);
  if (file.size > imageLimits.bytes) return "image.large";
  if (images.length >= imageLimits.count) return "images.many";
  return inline(total(images) + file.size) > limits.inline ? "images.heavy" : undefined;
}

const total = (list: Attachment[]) => list.reduce((sum, a) => sum + a.size, 0);

/** inline is how long so many bytes are in base64. */
const inline = (bytes: number) => Math.ceil((bytes * 4) / 3);

export async function read(file: File): Promise<Attachment> {
  const url = await new Promise<string>((done, failed) => {
    const reader = new FileReader();
    reader.onload = () => done(reader.result as string);
    reader.onerror = () => failed(reader.error ?? new Error(file.name));
    reader.readAsDataURL(file);
  });
  return { id: unique(), name: file.name || pasted(file.type), size: file.size, image: isImage(file.type), url };
}

/** What comes from the clipboard has no name. */
function pasted(type: string): string {
  return `pasted.${type.split("/")[1]?.split("+")[0] || "bin"}`;
}

/** toFile is the content again, to be uploaded. The page may not fetch data: addresses. */
export function toFile(a: Attachment): File {
  const comma = a.url.indexOf(",");
  const text = atob(a.url.slice(comma + 1));
  const bytes = Uint8Array.from(text, (c) => c.charCodeAt(0));
  return new File([bytes], a.name, { type: /^data:([^;,]*)/.exec(a.url)?.[1] ?? "" });
}

/** held are the files of a drop or a paste. Folders are left out: a browser gives them as empty files. */
export function held(from: DataTransfer | null): File[] {
  const files = [...(from?.items ?? [])].filter((i) => i.kind === "file" && !i.webkitGetAsEntry()?.isDirectory);
  return files.map((i) => i.getAsFile()).filter((f) => f !== null);
}
