package conversation

import (
	"deckhand/api"
	"deckhand/internal/settings"
)

// Models is what the use cases know of models.
type Models struct {
	// Default is the model of settings that name none.
	Default string
	// NeedsKey reports whether the model in the settings cannot be asked, because no key for it is stored.
	NeedsKey func(s *settings.Settings) bool
	// HasPrice reports whether the price of a model is known.
	HasPrice func(model string) bool
	// Blind says why a model is of no use for a message with images, "" if it is or nothing is known. nil refuses no images.
	Blind func(model string) string
	// Other says why a conversation cannot use a model in place of the one in the settings, "" if it can: there is no
	// such model, or no key of its provider is stored. nil allows any.
	Other func(s settings.Settings, model string) string
}

// Use is what a model is wanted for: which of the questions Check asks.
type Use struct {
	// Model takes the place of the one in the settings; "" keeps it.
	Model string
	// Key asks whether the stored key opens the model, or it needs none.
	Key bool
	// Price asks whether the limits on money can be kept. Limited is true if the conversation has a budget of its own,
	// UserLimit if the server limits what a user may spend.
	Price, Limited, UserLimit bool
	// Images asks whether the model can be shown images.
	Images bool
}

// Name is the model that the settings choose.
func (m Models) Name(s *settings.Settings) string {
	if v := value(s.LLMModel); v != "" {
		return v
	}
	return m.Default
}

// Check is the one place that decides whether a model may run with the user's key, its price, the limits on money and the
// images of a message. It returns nil if it may.
func (m Models) Check(s *settings.Settings, u Use) *Refusal {
	model := m.Name(s)
	if u.Model != "" {
		model = u.Model
	}
	if u.Key && u.Model != "" && m.Other != nil {
		if why := m.Other(*s, u.Model); why != "" {
			return refuse(Unmet, api.CodeModelUnavailable, why)
		}
	}
	if u.Key && u.Model == "" && m.NeedsKey(s) {
		return refuse(Unmet, api.CodeLLMAuthentication, "Error authenticating with the LLM provider. Please check your API key")
	}
	if why := u.limit(s); u.Price && why != "" && !m.HasPrice(model) {
		return refuse(Unmet, api.CodePriceUnknown, why+", but the price of "+model+" is unknown, so the limit cannot be enforced. "+
			"Choose another model, remove the limit, or ask the operator to set a price under prices in the server's config file (0 is allowed).")
	}
	if u.Images && m.Blind != nil {
		if why := m.Blind(model); why != "" {
			return refuse(Unmet, api.CodeBadRequest, why)
		}
	}
	return nil
}

// limit names the limit on money that holds, "" if there is none.
func (u Use) limit(s *settings.Settings) string {
	switch {
	case u.Limited:
		return "The conversation has a budget"
	case s.MaxBudgetPerTask != nil:
		return "A budget per conversation is set"
	case u.UserLimit:
		return "This server has a spending limit per user"
	}
	return ""
}

// CheckModel is Models.Check with the limit of this server.
func (s *Service) CheckModel(stored *settings.Settings, u Use) *Refusal {
	u.UserLimit = s.UserLimit > 0
	return s.Models.Check(stored, u)
}

// checkSettings says what in the settings keeps a conversation from starting.
func (s *Service) checkSettings(stored *settings.Settings, images bool) *Refusal {
	if image, _ := stored.Image(); image != "" && !s.SandboxImages {
		return refuse(Unmet, api.CodeSandboxImage,
			"The settings have a sandbox image, but this server's sandbox driver cannot run images. Remove the base image and the runtime image from the settings, or ask the operator for another driver.")
	}
	return s.CheckModel(stored, Use{Key: true, Price: true, Images: images})
}
