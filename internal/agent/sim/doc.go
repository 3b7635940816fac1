// Package sim is a test of the agent loop as a whole: the real loop on a real
// log, in virtual time, with everything around it going wrong. Models break off,
// tools fail, the store refuses or answers too late, servers die or go on after
// they were replaced, and people stop, pause, repeat themselves and change their
// minds, all by dice that a seed decides. Afterwards the log, what the models
// were shown, what the tools did and what was paid are compared with what the
// product promises.
//
// A seed decides what goes wrong, not how the scheduler orders what happens at
// the same moment: a failure that does not come back at once comes back with
// -count.
package sim
