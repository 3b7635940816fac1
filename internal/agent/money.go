package agent

import (
	"math"

	"deckhand/internal/llm"
	"deckhand/internal/session"
)

// maxAnswer is how many tokens an answer may have, if the model has no lower limit.
const maxAnswer = 8192

func answerLimit(i llm.Info) int64 {
	if i.MaxOutput > 0 {
		return min(i.MaxOutput, maxAnswer)
	}
	return maxAnswer
}

// Tokens that are not bytes of text: what an image may cost at most, and what a
// provider puts around a message.
const (
	imageTokens   = 10_000
	messageTokens = 16
)

// worstCase is the money to reserve for a call: what the model was last shown,
// as the provider counted it; a token for every byte since, as no tokenizer
// makes more of them; and the longest answer. Input may be put into a cache,
// which costs more.
func (t *transcript) worstCase(p Profile, offered int, answer int64) session.Money {
	input := t.counted + t.since
	if t.counted == 0 || t.model != p.ModelName {
		input = t.size + int64(len(p.System)+len(t.extra)+offered)
	}
	price := p.Info.Price
	price.Input = max(price.Input, price.CacheWrite, price.CacheRead)
	return cost(llm.Price{Input: price.Input, Output: price.Output}, llm.Usage{Input: input + 1000, Output: answer})
}

// shortAnswer is the least that is worth asking for.
const shortAnswer = 1024

// affordable is how long the answer may be if so much money is left: as long as
// usual, or shorter rather than none at all.
func (t *transcript) affordable(p Profile, offered int, left session.Money) int64 {
	most := answerLimit(p.Info)
	if p.Info.Price.Output <= 0 || t.worstCase(p, offered, most) <= left {
		return most
	}
	short := int64(float64(left-t.worstCase(p, offered, 0)) / (1e3 * p.Info.Price.Output))
	if short < min(shortAnswer, most) {
		return most // it is said how much is missing
	}
	return min(short, most)
}

// cost is exact to a billionth of a dollar: prices are per million tokens.
func cost(p llm.Price, u llm.Usage) session.Money {
	plain := max(u.Input-u.CacheRead-u.CacheWrite, 0)
	return session.Money(math.Ceil(1e3 * (p.Input*float64(plain) + p.CacheRead*float64(u.CacheRead) + p.CacheWrite*float64(u.CacheWrite) + p.Output*float64(u.Output))))
}

// outOfMoney is how a turn ends that there is no money for: the error's id, and
// what a person can do about it.
func outOfMoney(e *session.BudgetError) (id, reason string) {
	if e.Month != "" {
		return "STATUS$ERROR_USER_BUDGET", e.Error() + ". Ask the operator for a higher limit or wait until then, then send a message to continue."
	}
	return "STATUS$ERROR_BUDGET", e.Error() + ". Raise the budget and send a message to continue."
}
