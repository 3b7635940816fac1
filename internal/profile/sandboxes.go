package profile

import (
	"context"
	"errors"

	"deckhand/internal/agent"
	"deckhand/internal/gitaccess"
	"deckhand/internal/sandbox"
	"deckhand/internal/secret"
	"deckhand/internal/session"
	"deckhand/internal/settings"
)

// SandboxConfig says what all sandboxes have in common.
type SandboxConfig struct {
	Settings *settings.Service
	Limits   sandbox.Limits
	// Folder is the workspace of every conversation, "" for one of its own each.
	Folder string
	// Path is where programs are looked for, "" for where the image says.
	Path string
	// Gate says that git in the sandbox goes through the proxy of the server.
	Gate bool
	// Seal is the key for what a sandbox's runner writes down.
	Seal func(session.ID) []byte
}

// Sandboxes turns a user's settings into the spec of a sandbox.
func Sandboxes(c SandboxConfig) func(ctx context.Context, st session.State) (sandbox.Spec, error) {
	all := c.Settings
	environment := func(env map[string]string, s settings.Settings) map[string]string {
		gitaccess.ProtectBare(env)
		if !c.Gate { // without a sandbox there is no proxy either: git goes where it always went
			return env
		}
		return gitaccess.Environment(env, s)
	}
	return func(ctx context.Context, st session.State) (sandbox.Spec, error) {
		spec := sandbox.Spec{Limits: c.Limits, Folder: c.Folder, Env: map[string]string{}, Labels: map[string]string{"deckhand.user": st.Owner}, Seal: c.Seal(st.ID),
			Inside: func(values []string) { all.Hold(st.Owner, string(st.ID), values...) }}
		if c.Path != "" {
			spec.Env["PATH"] = c.Path
		}
		s, err := all.Get(ctx, st.Owner)
		if errors.Is(err, settings.ErrNotFound) {
			gitaccess.Identify(spec.Env, st.Owner, settings.Settings{})
			spec.Env = environment(spec.Env, settings.Settings{})
			return spec, nil
		}
		if err != nil {
			return spec, err
		}
		if name, prepared := s.Image(); name != "" {
			spec.Image, spec.Prepared = name, prepared
		}
		if n := s.RemoteRuntimeResourceFactor; n != nil {
			spec.Limits.CPUs *= float64(*n)
			spec.Limits.Memory *= int64(*n)
		}
		gitaccess.Identify(spec.Env, st.Owner, s)
		for name, custom := range gitaccess.CustomSecrets(st, s) {
			value := custom.Value.Reveal()
			spec.Env[name] = value
			if secret.Weakness(value) == "" {
				spec.Secrets = append(spec.Secrets, value)
			}
		}
		// What running shells have keeps being masked, whatever becomes of the settings.
		all.Hold(st.Owner, string(st.ID), spec.Secrets...)
		if gitaccess.Coauthor(st.Owner, s) != "" && c.Folder == "" {
			gitaccess.Template(spec.Env)
		}
		spec.Env = environment(spec.Env, s)
		return spec, nil
	}
}

// Workspaces gives sandboxes whose environment is what the settings say now, for
// everything that is started in them from then on.
type Workspaces struct {
	agent.Workspaces
	Sessions *session.Sessions
	Spec     func(ctx context.Context, st session.State) (sandbox.Spec, error)
}

// Use implements agent.Workspaces.
func (u *Workspaces) Use(ctx context.Context, id session.ID) (*sandbox.Sandbox, func(), error) {
	box, release, err := u.Workspaces.Use(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	if err := u.tell(ctx, id, box); err != nil {
		release()
		return nil, nil, err
	}
	return box, release, nil
}

func (u *Workspaces) tell(ctx context.Context, id session.ID, box *sandbox.Sandbox) error {
	// The session was just changed, with the event that needs the sandbox.
	st, ok := u.Sessions.Peek(id)
	if !ok {
		var err error
		if st, err = u.Sessions.Load(ctx, id); err != nil {
			return err
		}
	}
	spec, err := u.Spec(ctx, st)
	if err != nil {
		return err
	}
	return box.Equip(ctx, spec.Secrets, spec.Env)
}
