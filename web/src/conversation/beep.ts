// Two short tones, made here: no file is loaded for them.

let context: AudioContext | undefined;

/** beep sounds once. Browsers stay silent until the user has interacted with the page. */
export function beep(low: boolean): void {
  if (!navigator.userActivation.hasBeenActive) return;
  context ??= new AudioContext();
  const from = context.currentTime;
  (low ? [330, 262] : [523, 784]).forEach((pitch, i) => {
    const tone = context!.createOscillator();
    const volume = context!.createGain();
    const start = from + i * 0.14;
    tone.frequency.value = pitch;
    volume.gain.setValueAtTime(0, start);
    volume.gain.linearRampToValueAtTime(0.08, start + 0.02);
    volume.gain.exponentialRampToValueAtTime(0.0001, start + 0.22);
    tone.connect(volume).connect(context!.destination);
    tone.start(start);
    tone.stop(start + 0.25);
  });
}
