// Links are relative to where this script lies: a proxy may have put a path before ours.
const root = new URL("../..", document.currentScript.src);

document.getElementById("logout").addEventListener("click", async () => {
  await fetch(new URL("api/logout", root), { method: "POST" });
  location.replace(new URL("login", root));
});
