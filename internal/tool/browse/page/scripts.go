package page

// What the protocol has no command for is done by these functions, which run in
// the page with the element as "this". A page can make them lie, but only about
// itself.
const (
	// readText cuts a text that is too long to read.
	readText = `function () { return String(this.innerText ?? this.textContent ?? "").slice(0, 200000); }`

	// clickHidden is for elements that take up no room, where no mouse could go.
	clickHidden = `function () {
		if (this.tagName === "OPTION") throw new Error("this is an option of a list: use select_option with the list's number");
		if (typeof this.click !== "function" || !this.isConnected) throw new Error("the element is not visible");
		this.click();
	}`

	// fillField sets what is not typed (a date, a color), and selects the content of
	// everything else so that it can be typed over, which the answer true says.
	fillField = `function (text) {
		if (this.disabled) throw new Error("the field is disabled");
		if (this.readOnly) throw new Error("the field can only be read");
		const tag = this.tagName, type = (this.type || "").toLowerCase();
		if (tag === "SELECT") throw new Error("this is a list: use select_option");
		if (tag === "INPUT") {
			if (["checkbox", "radio", "button", "submit", "reset", "image", "hidden"].includes(type))
				throw new Error("nothing can be written into a field of the type " + type + ": use click");
			if (type === "file") throw new Error("this field takes files: use upload_file");
		} else if (tag !== "TEXTAREA" && !this.isContentEditable) {
			throw new Error("nothing can be written into this element");
		}
		this.scrollIntoView({block: "center", behavior: "instant"});
		this.focus();
		if (tag === "INPUT" && ["color", "date", "datetime-local", "month", "range", "time", "week"].includes(type)) {
			Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(this, text);
			if (text !== "" && this.value !== text)
				throw new Error(JSON.stringify(text) + " does not fit into a field of the type " + type);
			this.dispatchEvent(new Event("input", {bubbles: true}));
			this.dispatchEvent(new Event("change", {bubbles: true}));
			return false;
		}
		if (tag === "INPUT" || tag === "TEXTAREA") {
			this.select();
			return true;
		}
		const range = document.createRange();
		range.selectNodeContents(this);
		const selection = getSelection();
		selection.removeAllRanges();
		selection.addRange(range);
		return true;
	}`

	// selectOptions chooses by value first, then by what is shown.
	selectOptions = `function (wanted) {
		if (this.tagName !== "SELECT") throw new Error("this is not a list of options: click on it instead");
		if (this.disabled) throw new Error("the list is disabled");
		if (wanted.length > 1 && !this.multiple) throw new Error("only one option of this list can be chosen");
		const all = Array.from(this.options), chosen = wanted.map(w => {
			const o = all.find(o => o.value === w) || all.find(o => o.label.trim() === w.trim() || o.text.trim() === w.trim());
			if (!o) throw new Error("there is no option " + JSON.stringify(w) + "; there are " + JSON.stringify(all.map(o => o.label).slice(0, 50)));
			if (o.disabled) throw new Error("the option " + JSON.stringify(w) + " is disabled");
			return o;
		});
		this.focus();
		all.forEach(o => o.selected = chosen.includes(o));
		this.dispatchEvent(new Event("input", {bubbles: true}));
		this.dispatchEvent(new Event("change", {bubbles: true}));
	}`

	// canDrag says whether the browser itself drags the element.
	canDrag = `function () { return !!this.closest('[draggable="true"], a[href], img'); }`

	// measure says how large the page is, how it was answered, and what it is called.
	measure = `({
		elements: document.getElementsByTagName("*").length,
		characters: (document.documentElement?.textContent ?? "").length,
		status: performance.getEntriesByType("navigation")[0]?.responseStatus ?? 0,
		url: location.href.slice(0, 4000),
		title: document.title.slice(0, 300),
		above: Math.round(scrollY),
		below: Math.max(0, Math.round((document.documentElement?.scrollHeight ?? 0) - innerHeight - scrollY)),
	})`
)
