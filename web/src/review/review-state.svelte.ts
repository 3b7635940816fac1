// What a person looks at in the changes of each conversation. It outlives the panel.
class ReviewState {
  range = $state("start");
  chosen = $state<string | undefined>();
}

const states = new Map<string, ReviewState>();

export function reviewState(id: string): ReviewState {
  const found = states.get(id) ?? new ReviewState();
  states.set(id, found);
  return found;
}
