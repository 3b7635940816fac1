// The look of text fields and selects in the settings.
export const inputClass =
  "min-h-8 w-full rounded-md border border-edge bg-paper px-2.5 py-1.5 text-sm " +
  "placeholder:text-soft disabled:opacity-55 aria-invalid:border-bad";
