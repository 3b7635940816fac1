package egress

import "time"

// SetFirstPart makes long exchanges tell of themselves sooner.
func (p *Proxy) SetFirstPart(d time.Duration) { p.firstPart = d }
