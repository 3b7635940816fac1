// The theme that somebody chose in this browser, before anything is painted in another.
try {
  const theme = localStorage.getItem("deckhand-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // a browser that keeps nothing has no choice to show
}
