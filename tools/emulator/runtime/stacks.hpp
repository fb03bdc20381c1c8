// Stacks of fibers, kept for the next fiber when one ends.
//
// Used by block.cpp. Invariant: a stack has an unmapped page below it, so an overflow is a crash and not a wrong
// result.
#pragma once

#include <boost/context/protected_fixedsize_stack.hpp>
#include <vector>

namespace fulcrum::emulator {

class StackPool {
 public:
  StackPool() = default;
  StackPool(const StackPool&) = delete;
  StackPool& operator=(const StackPool&) = delete;
  ~StackPool() {
    for (boost::context::stack_context& stack : free_) make_.deallocate(stack);
  }

  boost::context::stack_context take() {
    if (free_.empty()) return make_.allocate();
    const boost::context::stack_context stack = free_.back();
    free_.pop_back();
    return stack;
  }
  void give(const boost::context::stack_context& stack) { free_.push_back(stack); }

 private:
  // A variant's frame holds its accumulators (512 bytes at most) and fragments; fmt needs a few KiB to say what is
  // wrong.
  boost::context::protected_fixedsize_stack make_{64 * 1024};
  std::vector<boost::context::stack_context> free_;
};

// The allocator that Boost.Context asks for.
struct PooledStack {
  StackPool* pool;
  boost::context::stack_context allocate() { return pool->take(); }
  void deallocate(boost::context::stack_context& stack) { pool->give(stack); }
};

}  // namespace fulcrum::emulator
