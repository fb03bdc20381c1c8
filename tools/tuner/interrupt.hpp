// Ctrl-C and SIGTERM as a question that long loops ask, so that what is known can be written before the program ends.
//
// Called by tune: watch_interrupts() once, then interrupted() between steps.
// Invariant: the first signal only sets a flag; a second one ends the program at once, as it would without this.
#pragma once

namespace fulcrum::tuner {

void watch_interrupts();
bool interrupted();

}  // namespace fulcrum::tuner
