// Finds where the agent reads messages. A message sent during a turn is read at the next model
// call, or in the next turn.
import type { Event } from "../lib/events";

export interface Read {
  id: number;
  /** The last event that is read. */
  upTo: number;
  /** Whether a turn began: messages before it were not sent during a turn. */
  began: boolean;
}

/** readBy returns the messages that the agent reads at an event. */
export function readBy(e: Event): Read | undefined {
  switch (e.kind) {
    case "turn_began":
      return { id: e.id, upTo: e.id, began: true };
    case "model_asked":
      return e.payload.purpose ? undefined : { id: e.id, upTo: e.payload.up_to, began: false };
    case "turn_ended":
    case "stopped":
    case "failed":
      return { id: e.id, upTo: e.id, began: false };
  }
}
