// One packed Layout for a Shape: weights are packed once, whatever the token count.
//
// Called by both ways of tuning, once a group of cells.
// Invariant: the default's Layout wins unless another is faster in total by more than delta; ties go to it.
#pragma once

#include <fulcrum/core/layout.h>

#include <map>
#include <vector>

namespace fulcrum::tuner {

struct LayoutLess {
  bool operator()(const Layout& a, const Layout& b) const {
    return a.code_word != b.code_word ? a.code_word < b.code_word : a.k_order < b.k_order;
  }
};
using LayoutTimes = std::map<Layout, double, LayoutLess>;  // best microseconds of a cell in each Layout

// The Layout of least total time, all cells weighing the same, among those that every cell has a time for; `base` where
// there is none.
Layout choose_layout(const std::vector<LayoutTimes>& cells, Layout base);

}  // namespace fulcrum::tuner
