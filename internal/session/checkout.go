package session

// CheckOut records the repository that is in the workspace now. It is allowed outside of turns:
// a workspace may also be made for a user who looks into it.
func (s State) CheckOut(c CheckedOut) ([]Payload, error) {
	if err := s.alive(); err != nil {
		return nil, err
	}
	return []Payload{c}, nil
}

// EndSetUp records how the script of the checkout ended, once.
func (s State) EndSetUp(u SetUp) ([]Payload, error) {
	if err := s.alive(); err != nil {
		return nil, err
	}
	if s.SetUp != nil {
		return nil, nil
	}
	return []Payload{u}, nil
}

// Unprepared is true while the session's repository is not in its workspace, and
// set up, yet. A delegated session works in the workspace of the one above it.
func (s State) Unprepared() bool {
	if s.Created.Repository == "" || s.Created.Parent != "" {
		return false
	}
	return s.Checkout == nil || s.Checkout.Script != "" && s.SetUp == nil || s.Checkout.Hook != "" && s.Hook == nil
}

func (s State) checkCheckout(p Payload) error {
	switch p := p.(type) {
	case CheckedOut:
		if s.Created.Repository == "" || p.Dir == "" {
			return s.no(p, "a checkout is of the session's repository, in a folder")
		}
	case TrustSet:
		if s.Created.Repository == "" {
			return s.no(p, "only a repository is trusted")
		}
	case SetUpBegan:
		if s.Checkout == nil || s.Checkout.Script == "" || s.SettingUp != nil || s.SetUp != nil {
			return s.no(p, "a script is begun once")
		}
		if c, open := s.ScriptsCall(); open {
			return s.no(p, "a script about which the person is asked is not begun: "+c.ID)
		}
	case HookSet:
		if s.Checkout == nil {
			return s.no(p, "a hook belongs to a checkout")
		}
	case SetUp:
		if s.Checkout == nil || s.Checkout.Script == "" || s.SetUp != nil {
			return s.no(p, "a checkout is set up once, by its script")
		}
	}
	return nil
}
