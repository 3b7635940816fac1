package api

// Usage is the response of GET /api/usage. Amounts are in US dollars, months are in UTC.
type Usage struct {
	Month    string       `json:"month" doc:"The current month, such as 2026-11."`
	Spent    float64      `json:"spent" doc:"US dollars spent this month by all conversations, including deleted ones."`
	Reserved float64      `json:"reserved" doc:"Maximum cost of the model calls in progress."`
	Limit    *float64     `json:"limit" doc:"Monthly spending limit; null if there is none. Model calls that could exceed it are not made."`
	Months   []UsageMonth `json:"months" doc:"The last twelve months, the current month first."`
}

// UsageMonth is the usage of a month.
type UsageMonth struct {
	Month string  `json:"month"`
	Spent float64 `json:"spent"`
}
