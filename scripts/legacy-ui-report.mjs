// Reads the test's events (go test -json) and prints a line per step.
import { createInterface } from "node:readline";

const said = new Map();
let steps = 0;
let failed = 0;
const all = [];
for await (const line of createInterface({ input: process.stdin })) {
  let e;
  try {
    e = JSON.parse(line);
  } catch {
    all.push(line);
    continue;
  }
  const step = e.Test?.split("/")[1];
  if (e.Action === "output" || e.Action === "build-output") {
    (step ? (said.get(step) ?? said.set(step, []).get(step)) : all).push(e.Output.trimEnd());
  } else if (step && (e.Action === "pass" || e.Action === "fail")) {
    steps++;
    const name = step.replaceAll("_", " ");
    if (e.Action === "pass") {
      console.log(`ok      ${name}`);
      continue;
    }
    failed++;
    const why = said.get(step).filter((text) => !/^(=== |\s*--- |\s+\S+_test\.go:\d+: it took)/.test(text) && !/^\s+at /.test(text));
    console.log(`FAILED  ${name}: ${why.join("\n        ").trim()}`);
  } else if (!step && e.Test && e.Action === "fail" && failed === 0) {
    failed++;
  }
}
if (failed > 0 || steps === 0) {
  console.log(all.filter((text) => !/^(=== |--- |FAIL|ok )/.test(text)).join("\n"));
  process.exitCode = 1;
}
console.log(`${steps} steps, ${failed} failed`);
