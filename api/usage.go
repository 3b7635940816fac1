package api

// Usage answers GET /api/usage. Amounts are in US dollars, months are those of UTC.
type Usage struct {
	Month    string       `json:"month" doc:"The present month, such as 2026-11."`
	Spent    float64      `json:"spent" doc:"What all conversations spent in it, deleted ones included."`
	Reserved float64      `json:"reserved" doc:"What the model calls that are under way may cost at most."`
	Limit    *float64     `json:"limit" doc:"What may be spent in a month; null if there is no limit. No model call is made that might exceed it."`
	Months   []UsageMonth `json:"months" doc:"The last twelve months, the present one first."`
}

// UsageMonth is what was spent in a month.
type UsageMonth struct {
	Month string  `json:"month"`
	Spent float64 `json:"spent"`
}
