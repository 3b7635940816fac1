// How the controls of forms look, in one place.
export const input =
  "min-h-8 w-full rounded-md border border-edge bg-paper px-2.5 py-1.5 text-sm " +
  "placeholder:text-soft disabled:opacity-55 aria-invalid:border-bad";
