package main

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"deckhand/internal/llm"
	"deckhand/internal/llm/llmtest"
)

// Whatever an agent writes, or lets a sandbox serve, the page and the login stay the person's own.
func TestHostileAgentInABrowser(t *testing.T) {
	t.Parallel()
	findChromium(t)
	h := newTheatre(t, "quinn", "rosa")
	h.lab.mind("pirate", pirate)
	h.play(t, "hostile.mjs")
}

// Scripts that would give themselves away: any of them that runs sets a mark that the play looks for.
const (
	marked   = "window.pwned=1;top.pwned=1"
	evilSVG  = `<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40" onload="` + marked + `"><script>` + marked + `</script><image href="http://evil.test/s.png"/><rect width="40" height="40"/></svg>`
	evilPage = `<title>Hostile</title><pre id=out></pre><script>
const tell = (what, found) => (out.textContent += what + "=" + found + "\n");
const attempt = (what, act) => { try { tell(what, act()); } catch { tell(what, "no"); } };
attempt("parent", () => parent.document.title);
attempt("cookie", () => document.cookie || "no");
attempt("top", () => { top.location = "http://evil.test/"; return top.location.href; });
(async () => {
  const other = document.referrer || new URLSearchParams(location.search).get("home") || "none";
  tell("referrer", other);
  for (const home of ["http://127.0.0.1:" + location.port, "http://localhost:" + location.port]) {
    await fetch(home + "/api/me", { credentials: "include" }).then((a) => a.text(), () => "no").then((a) => tell("me", a));
    await fetch(home + "/api/settings", { method: "POST", mode: "no-cors", credentials: "include", body: '{"language":"de"}' }).then((a) => a.type, () => "no").then((a) => tell("post", a));
  }
  tell("all", "done");
})();
</script>`
)

// loot is what a pirate writes: tags, links and pictures that run or load something, and text that is made to be read forever.
func loot() string {
	parts := []string{
		`<img src=x onerror="` + marked + `"><script>` + marked + `</script><svg onload="` + marked + `"><style>*{display:none}</style>`,
		`<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=` + marked + `&gt;">`,
		`<iframe srcdoc="<script>` + marked + `</script>"></iframe><form action=http://evil.test><button>Go</button></form><base href=http://evil.test/>`,
		`[script](javascript:` + marked + `) [entity](&#106;avascript:alert(1)) [data](data:text/html;base64,` + base64.StdEncoding.EncodeToString([]byte("<script>"+marked+"</script>")) + `) [tab](java	script:alert(1)) <javascript:alert(1)>`,
		`![far](http://evil.test/p.png) ![near](/api/me) ![svg](data:image/svg+xml;base64,` + base64.StdEncoding.EncodeToString([]byte(evilSVG)) + `) <img src="//evil.test/q.png" srcset="http://evil.test/r.png 2x">`,
		"```constructor\nx\n```\n\n```__proto__\nx\n```\n\n```html\n<script>" + marked + "</script>\n```",
		`<div id="main" class="fixed inset-0" style="position:fixed;inset:0">over everything</div><a name=app>`,
		strings.Repeat("> ", 1500), strings.Repeat("a_", 1500), strings.Repeat("<!--", 500) + "-->",
		"the end of the loot",
	}
	return strings.Join(parts, "\n\n")
}

// pirate is a model that means no good.
func pirate(a llmtest.Asked) llmtest.Reply {
	write := func(name, text string) string {
		return fmt.Sprintf("printf %%s %s | base64 -d > '%s'; ", base64.StdEncoding.EncodeToString([]byte(text)), name)
	}
	script := []llm.Call{
		shell(write("evil.svg", evilSVG) + write("evil.md", loot()) + write("like.txt", "data:application/pdf;base64,PHNjcmlwdD4=") + write("broken.txt", "data:image/png;base64,%%%") +
			write("index.html", evilPage) + write(`<img src=x onerror=pwned=1>.txt`, "x") + "(python3 -m http.server 8124 >/dev/null 2>&1 &) ; touch \"$(printf 'line\\nbreak\\033[31m.txt')\""),
		shell(`printf '\033]0;<script>pwned=1</script>\007\033]8;;javascript:pwned=1\033\\link\033]8;;\033\\ \033[38;2;999;0;0;url(x)mred\033[0m <b onclick=x>tag</b>\r\033[2K\033P1$r\033\\'; echo the end`),
		use("think", map[string]any{"thought": loot()}),
	}
	n := 0
	for _, m := range a.Messages {
		if m.Role == llm.ToolResult {
			n++
		}
	}
	if n < len(script) {
		return calls(a, script[n])
	}
	return llmtest.Reply{Text: loot()}
}
