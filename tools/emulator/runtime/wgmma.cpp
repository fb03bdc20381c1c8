// Execution of wgmma; see wgmma.hpp.
#include "runtime/wgmma.hpp"

#include <fulcrum/core/matrix_descriptor.h>

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "runtime/block.hpp"
#include "runtime/fault.hpp"
#include "runtime/mma_tables.hpp"

namespace fulcrum::emulator {
namespace {

constexpr const char* what = "wgmma";

MatrixDescriptor descriptor_of(uint64_t bits) {
  MatrixDescriptor fields;
  if (!decode_matrix_descriptor(bits, fields))
    fault(fmt::format("{}: {:#x} is no descriptor of a K-major operand", what, bits));
  return fields;
}

// Row `row` of an operand, 16 values of k.
void read_row(SharedMemory& memory, const MatrixDescriptor& fields, uint32_t row, const Accessor& by,
              uint32_t (&pairs)[8]) {
  for (uint32_t piece = 0; piece < 2; ++piece)
    memory.load_async(what, matrix_address(fields, row, 16 * piece), &pairs[4 * piece], 16, by);
}

}  // namespace

void WgmmaQueue::issue(const std::vector<Thread*>& threads, const std::vector<WgmmaLane>& lanes) {
  if (!fenced_) fault(fmt::format("{}: no wgmma_fence since the last commit", what));
  const WgmmaLane& first = lanes.front();
  for (const WgmmaLane& lane : lanes) {
    if (lane.n != first.n || lane.a_descriptor != first.a_descriptor ||
        lane.tokens_descriptor != first.tokens_descriptor)
      fault(fmt::format("{}: the lanes of a warp give different sizes or descriptors", what));
  }
  Accumulators& kept = accumulators_[first.d];
  if (kept.in_flight++ == 0) {
    kept.values.clear();
    for (const WgmmaLane& lane : lanes) kept.values.emplace_back(lane.d, lane.d + lane.n / 2);
  }
  for (const WgmmaLane& lane : lanes)
    for (uint32_t i = 0; i < lane.n / 2; ++i) lane.d[i] = std::bit_cast<float>(poison_word);
  open_.push_back({lanes, threads.front()->clocks, threads.front()->fenced});
}

void WgmmaQueue::commit() {
  fenced_ = false;
  groups_.push_back(std::move(open_));
  open_.clear();
}

void WgmmaQueue::execute(const std::vector<Thread*>& threads, const Instruction& instruction) {
  Thread& reader = *threads.front();
  SharedMemory& memory = reader.block->memory();
  const Accessor by{reader.accessor().epoch, &instruction.clocks, &instruction.fenced};
  const WgmmaLane& first = instruction.lanes.front();
  std::vector<std::vector<float>>& d = accumulators_.at(first.d).values;
  MmaTables weights{first.is_f16 ? DType::f16 : DType::bf16};
  if (first.a != nullptr) {
    for (uint32_t lane = 0; lane < 32; ++lane) weights.add_weights(lane, instruction.lanes[lane].a);
  } else {
    const MatrixDescriptor fields = descriptor_of(first.a_descriptor);
    uint32_t pairs[16][8];  // [row of this warp][two columns]
    for (uint32_t row = 0; row < 16; ++row)
      read_row(memory, fields, reader.place.thread / 32 % 4 * 16 + row, by, pairs[row]);
    for (uint32_t lane = 0; lane < 32; ++lane) {
      const uint32_t r = lane / 4, c = lane % 4;
      const uint32_t fragment[4] = {pairs[r][c], pairs[r + 8][c], pairs[r][c + 4], pairs[r + 8][c + 4]};
      weights.add_weights(lane, fragment);
    }
  }
  const MatrixDescriptor fields = descriptor_of(first.tokens_descriptor);
  for (uint32_t block = 0; block < first.n / 8; ++block) {
    MmaTables tables = weights;
    for (uint32_t token = 0; token < 8; ++token) {
      uint32_t pairs[8];
      read_row(memory, fields, 8 * block + token, by, pairs);
      for (uint32_t pair = 0; pair < 8; ++pair) tables.add_token(token, 2 * pair, pairs[pair]);
    }
    for (uint32_t lane = 0; lane < 32; ++lane) tables.accumulate(lane, &d[lane][4 * block]);
  }
}

void WgmmaQueue::give_back(const Instruction& instruction) {
  const auto found = accumulators_.find(instruction.lanes.front().d);
  Accumulators& kept = found->second;
  if (--kept.in_flight > 0) return;
  for (uint32_t lane = 0; lane < 32; ++lane) {
    float* d = instruction.lanes[lane].d;
    for (size_t i = 0; i < kept.values[lane].size(); ++i) {
      if (std::bit_cast<uint32_t>(d[i]) != poison_word)
        fault(fmt::format("{}: an accumulator was written while it was in flight", what));
      d[i] = kept.values[lane][i];
    }
  }
  accumulators_.erase(found);
}

void WgmmaQueue::wait(const std::vector<Thread*>& threads, uint32_t pending_groups) {
  Thread& reader = *threads.front();
  while (groups_.size() > pending_groups) {
    for (const Instruction& instruction : groups_.front()) {
      execute(threads, instruction);
      give_back(instruction);
    }
    groups_.pop_front();
  }
  // the reads are over for every lane of the warp
  for (Thread* thread : threads)
    thread->clocks[reader.place.thread] =
        std::max(thread->clocks[reader.place.thread], reader.clocks[reader.place.thread]);
  reader.tick();
}

}  // namespace fulcrum::emulator
