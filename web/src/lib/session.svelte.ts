// Who is logged in, and what they have set. Pages read it here, so that it is asked for once.
import { ApiError, api, baseUrl, data, onLoggedOut, type Schemas } from "./api";
import { preferredLanguage, turnedAway, visitor } from "../login/link";
import { language, languages } from "./i18n.svelte";
import { browserStorage, tabStorage } from "./storage";

export type Settings = Schemas["Settings"];

// Tabs of the same browser have the same login.
const tabs = new BroadcastChannel(`deckhand-login:${baseUrl}`);

// Remembers, in this tab alone, that the user went to the identity provider.
const away = "deckhand-signing-on";

class Session {
  me = $state.raw<Schemas["Me"] | undefined>();
  /** null: nothing was stored yet. undefined: not known yet. */
  settings = $state.raw<Settings | null | undefined>();
  /** false once it is known that there is no login. */
  known = $state(visitor() !== "stranger" && !turnedAway(location.pathname, location.search));
  /** Nothing was stored when the page was made; asking would be an error in the browser's console. */
  private fresh = visitor() === "new";

  constructor() {
    onLoggedOut.call = () => {
      this.me = undefined;
      this.settings = undefined;
      this.known = false;
    };
    tabs.onmessage = ({ data: said }: MessageEvent<"in" | "out">) => {
      if (said === "out") onLoggedOut.call();
      else void this.meet().catch(() => {}); // it is out again, which every other request tells
    };
  }

  async load(): Promise<void> {
    this.me = await data(api.GET("/api/me"));
    this.known = true;
    if (tabStorage.get(away)) {
      tabStorage.remove(away);
      this.arrived();
    }
    await this.refresh();
  }

  /** refresh reads the settings again, after they were stored. */
  async refresh(): Promise<void> {
    try {
      this.settings = this.fresh ? null : await data(api.GET("/api/settings"));
    } catch (err) {
      if (!(err instanceof ApiError) || err.status !== 404) throw err;
      this.settings = null;
    }
    this.fresh = false;
    const wanted = this.settings?.language ? [this.settings.language] : navigator.languages;
    await language.use(preferredLanguage(wanted, Object.keys(languages)));
  }

  async logout(): Promise<void> {
    // The next user of this browser must not see this user's notifications.
    if (browserStorage.get("deckhand-notifications")) await (await import("./notices")).disable().catch(() => {});
    await api.POST("/api/logout");
    tabs.postMessage("out");
    onLoggedOut.call();
  }

  /** leaves is called when the user goes to the identity provider; after the return, the other tabs are told. */
  leaves(): void {
    tabStorage.set(away, "1");
  }

  /** arrived tells the other tabs about a login in this one. */
  arrived(): void {
    tabs.postMessage("in");
  }

  /** meet reloads the page if the logged-in user has changed. */
  private async meet(): Promise<void> {
    const { user } = await data(api.GET("/api/me"));
    if (user !== this.me?.user) location.reload();
  }
}

export const session = new Session();
