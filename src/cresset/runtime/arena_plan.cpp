#include "runtime/arena_plan.h"

#include <fmt/format.h>

#include <algorithm>

namespace cresset::runtime {
namespace {

constexpr int64_t kAlignment = 64;
constexpr int64_t kLeastGap = 4096;
constexpr uint32_t kNone = UINT32_MAX;
// A plan is good enough when it is within 1/kTolerance of what is needed at any rate, or wastes less than is worth
// planning for; until then blocks are placed anew, about kPlacements of them in all. Outputs of less than 1/kTolerance
// of what is alive together do not lend their memory: they would be held for longer, to save next to nothing. Nor do
// those of less than 1/kSmallPart that are made when the arena is not needed any more: it is given back before they are
// allocated.
constexpr int64_t kTolerance = 64, kSmallPart = 4, kSmallWaste = 1 << 16;
constexpr size_t kPlacements = 4096, kMostRounds = 32;

int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// One stretch of memory: a tensor and those that continue it.
struct Block {
  uint32_t tensor;  // kNone: an operator's scratch
  int64_t bytes;
  uint32_t first, last;
  uint32_t output = kNone;       // the last of them is an output: they lie in its memory
  std::vector<uint32_t> rivals;  // blocks alive at the same time
  int64_t alive = 0;             // bytes, with those that came before
};

// What blocks lie in.
struct Bin {
  TensorId tensor;  // an output; invalid: the arena
  int64_t bytes;    // INT64_MAX: it grows
  uint32_t first;   // from this step on it is no bin any more
};

// The steps that a bin is held in, as far as blocks lie in it.
struct Held {
  uint32_t from = kNone, end = 0;
};

struct Blocks {
  Blocks(const Program& program, const std::vector<int64_t>& numbers, std::span<const Scratch> scratch);

  std::vector<Block> list;   // by first step
  std::vector<uint32_t> of;  // by tensor
  std::vector<Bin> bins;     // outputs from the smallest to the largest, then the arena
  std::vector<uint32_t> bin_of_output;
  int64_t alive = 0, least = 0;  // least: what the arena needs at any rate

 private:
  void add(const Program& program, const std::vector<int64_t>& numbers);
  void add_bins(const Program& program, const std::vector<int64_t>& numbers);
  void sort();
  void find_rivals();
  void find_least();
  int64_t lent_at(uint32_t step) const;
};

Blocks::Blocks(const Program& program, const std::vector<int64_t>& numbers, std::span<const Scratch> scratch) {
  add(program, numbers);
  for (const Scratch& s : scratch) list.push_back({kNone, aligned(s.bytes), s.step, s.step, kNone, {}, 0});
  sort();
  find_rivals();
  add_bins(program, numbers);
  find_least();
}

void Blocks::add_bins(const Program& program, const std::vector<int64_t>& numbers) {
  uint32_t needed = 0;  // the arena, up to this step
  for (const Block& block : list)
    if (block.output == kNone && block.bytes != 0) needed = std::max(needed, block.last);
  for (uint32_t t = 0; t < program.tensors.size(); ++t) {
    const TensorSlot& slot = program.tensors[t];
    const int64_t bytes = numbers[slot.bytes.index];
    if (slot.home != Home::Fresh) continue;
    const int64_t least = std::max(kLeastGap, alive / (slot.first_step > needed ? kSmallPart : kTolerance));
    if (bytes < least && !slot.continues.valid()) continue;
    bins.push_back({{t}, bytes, slot.first_step});
  }
  std::stable_sort(bins.begin(), bins.end(), [](const Bin& a, const Bin& b) { return a.bytes < b.bytes; });
  bins.push_back({{}, INT64_MAX, kNone});
  bin_of_output.assign(program.tensors.size(), kNone);
  for (uint32_t b = 0; b + 1 < bins.size(); ++b) bin_of_output[bins[b].tensor.index] = b;
}

void Blocks::add(const Program& program, const std::vector<int64_t>& numbers) {
  const auto& tensors = program.tensors;
  of.assign(tensors.size(), kNone);
  std::vector<uint32_t> of_head(tensors.size(), kNone);
  for (uint32_t t = 0; t < tensors.size(); ++t) {
    const TensorSlot& slot = tensors[t];
    uint32_t head = t;  // a tensor may continue one that comes later in the list
    while (tensors[head].continues.valid()) head = tensors[head].continues.index;
    // What continues a result that ATen allocated is in no arena; an output that continues nothing is a bin alone.
    const bool output = slot.home == Home::Fresh && head != t;
    if ((slot.home != Home::Arena && !output) || tensors[head].home != Home::Arena) continue;
    if (slot.first_step > slot.last_step) continue;
    uint32_t& b = of_head[head];
    if (b == kNone) {
      b = static_cast<uint32_t>(list.size());
      list.push_back({head, 0, slot.first_step, slot.last_step, kNone, {}, 0});
    }
    Block& block = list[b];
    block.bytes = std::max(block.bytes, output ? numbers[slot.bytes.index] : aligned(numbers[slot.bytes.index]));
    block.first = std::min(block.first, slot.first_step);
    block.last = std::max(block.last, slot.last_step);
    if (output) block.output = t;
    of[t] = b;
  }
}

void Blocks::sort() {
  std::vector<uint32_t> order(list.size()), place(list.size());
  for (uint32_t b = 0; b < order.size(); ++b) order[b] = b;
  std::stable_sort(order.begin(), order.end(),
                   [this](uint32_t a, uint32_t b) { return list[a].first < list[b].first; });
  std::vector<Block> sorted;
  for (uint32_t i = 0; i < order.size(); ++i) {
    place[order[i]] = i;
    sorted.push_back(std::move(list[order[i]]));
  }
  list = std::move(sorted);
  for (uint32_t& b : of)
    if (b != kNone) b = place[b];
}

int64_t Blocks::lent_at(uint32_t step) const {
  int64_t bytes = 0;
  for (const Bin& bin : bins)
    if (bin.tensor.valid() && step < bin.first) bytes += bin.bytes;
  return bytes;
}

void Blocks::find_rivals() {
  std::vector<uint32_t> together;
  int64_t sum = 0;
  for (uint32_t b = 0; b < list.size(); ++b) {
    Block& block = list[b];
    if (block.bytes == 0) continue;
    std::erase_if(together, [&](uint32_t a) {
      const bool dead = list[a].last < block.first;
      if (dead) sum -= list[a].bytes;
      return dead;
    });
    for (const uint32_t a : together) {
      block.rivals.push_back(a);
      list[a].rivals.push_back(b);
    }
    together.push_back(b);
    alive = std::max(alive, sum += block.bytes);
    block.alive = sum;
  }
}

void Blocks::find_least() {
  for (const Block& block : list) least = std::max(least, block.alive - lent_at(block.first));
}

class Planner {
 public:
  Planner(const Program& program, const std::vector<int64_t>& numbers, std::span<const Scratch> scratch)
      : program_(program), blocks_(program, numbers, scratch) {}

  ArenaPlan run() {
    std::vector<uint32_t> order(blocks_.list.size());
    for (uint32_t b = 0; b < order.size(); ++b) order[b] = b;
    improve(order);  // as they come to life
    std::stable_sort(order.begin(), order.end(),
                     [this](uint32_t a, uint32_t b) { return blocks_.list[a].bytes > blocks_.list[b].bytes; });
    improve(order);  // the large ones first: what is small fits between
    ArenaPlan plan;
    plan.bytes = bytes_;
    plan.alive = blocks_.alive;
    plan.places.resize(program_.tensors.size());
    for (uint32_t t = 0; t < blocks_.of.size(); ++t)
      if (blocks_.of[t] != kNone) plan.places[t] = place_of(best_[blocks_.of[t]]);
    hold_bins(plan);
    find_gaps(plan);
    return plan;
  }

 private:
  struct Spot {
    uint32_t bin = kNone;  // none: not placed yet
    int64_t offset = 0;
  };
  ArenaPlan::Place place_of(const Spot& spot) const { return {blocks_.bins[spot.bin].tensor, spot.offset}; }

  bool good_enough() const {
    return !best_.empty() && bytes_ <= blocks_.least + std::max(blocks_.least / kTolerance, kSmallWaste);
  }

  // Places all in this order; then again with the block that lay highest placed first, and so on.
  void improve(std::vector<uint32_t> order) {
    const size_t rounds = std::clamp<size_t>(kPlacements / std::max<size_t>(order.size(), 1), 2, kMostRounds);
    for (size_t round = 0; round < rounds && !good_enough(); ++round) {
      const uint32_t highest = place(order);
      if (highest == kNone) return;
      const auto it = std::find(order.begin(), order.end(), highest);
      std::rotate(order.begin(), it, it + 1);
    }
  }

  // Each block at the tightest gap between its rivals that were placed before it, in the smallest bin that has one.
  // Kept when it beats the last plan. Returns the block that ends the arena.
  uint32_t place(const std::vector<uint32_t>& order) {
    std::vector<Spot> spots(blocks_.list.size());
    for (uint32_t b = 0; b < spots.size(); ++b)
      if (blocks_.list[b].output != kNone) spots[b] = {blocks_.bin_of_output[blocks_.list[b].output], 0};
    const auto arena = static_cast<uint32_t>(blocks_.bins.size() - 1);
    int64_t end = 0;
    uint32_t highest = kNone;
    for (const uint32_t b : order) {
      const Block& block = blocks_.list[b];
      if (block.output != kNone) continue;
      if (block.bytes == 0) spots[b] = {arena, 0};
      for (uint32_t bin = 0; spots[b].bin == kNone; ++bin)
        if (const int64_t offset = tightest_gap(block, bin, spots); offset >= 0) spots[b] = {bin, offset};
      if (spots[b].bin != arena || spots[b].offset + block.bytes <= end) continue;
      end = spots[b].offset + block.bytes;
      highest = b;
    }
    if (best_.empty() || end < bytes_) {
      best_ = std::move(spots);
      bytes_ = end;
    }
    return highest;
  }
  // -1: none.
  int64_t tightest_gap(const Block& block, uint32_t bin, const std::vector<Spot>& spots) {
    const Bin& room = blocks_.bins[bin];
    if (room.tensor.valid() && (block.bytes > room.bytes || block.last >= room.first)) return -1;
    taken_.clear();
    for (const uint32_t rival : block.rivals)
      if (spots[rival].bin == bin)
        taken_.emplace_back(spots[rival].offset, spots[rival].offset + blocks_.list[rival].bytes);
    std::sort(taken_.begin(), taken_.end());
    int64_t end = 0, best = -1, best_gap = 0;
    for (const auto& [from, to] : taken_) {
      const int64_t gap = from - end;
      if (gap >= block.bytes && (best < 0 || gap < best_gap)) best = end, best_gap = gap;
      end = std::max(end, to);
    }
    if (best >= 0) return best;
    return block.bytes <= room.bytes - end ? end : -1;
  }

  // From the first block to the last; an output until it is written, the arena until an output is allocated after it.
  void hold_bins(ArenaPlan& plan) {
    held_.resize(blocks_.bins.size());
    for (uint32_t b = 0; b < best_.size(); ++b) {
      const Block& block = blocks_.list[b];
      if (block.bytes == 0) continue;
      Held& held = held_[best_[b].bin];
      held.from = std::min(held.from, block.first);
      held.end = std::max(held.end, block.last == kNone ? kNone : block.last + 1);
    }
    for (size_t bin = 0; bin + 1 < held_.size(); ++bin) held_[bin].end = blocks_.bins[bin].first;
    Held& arena = held_.back();
    for (const TensorSlot& slot : program_.tensors)
      if (slot.home == Home::Fresh && slot.first_step >= arena.end && slot.first_step <= slot.last_step)
        plan.end = std::min(plan.end, slot.first_step);
    arena = {0, plan.end};
  }

  void find_gaps(ArenaPlan& plan) const {
    uint32_t steps = 0;
    for (const Step& step : program_.steps) steps += !std::holds_alternative<Release>(step);
    plan.gaps_from.push_back(0);
    std::vector<uint32_t> alive;
    uint32_t next = 0;
    for (uint32_t s = 0; s < steps; ++s) {
      std::erase_if(alive, [&](uint32_t b) { return blocks_.list[b].last < s; });
      for (; next < blocks_.list.size() && blocks_.list[next].first <= s; ++next)
        if (blocks_.list[next].bytes != 0 && blocks_.list[next].last >= s && blocks_.list[next].tensor != kNone)
          alive.push_back(next);
      std::sort(alive.begin(), alive.end(),
                [this](uint32_t a, uint32_t b) { return best_[a].offset < best_[b].offset; });
      for (uint32_t bin = 0; bin < blocks_.bins.size(); ++bin)
        if (held_[bin].from <= s && s < held_[bin].end) add_gaps(bin, alive, plan);
      plan.gaps_from.push_back(static_cast<uint32_t>(plan.gap_list.size()));
    }
  }
  void add_gaps(uint32_t bin, const std::vector<uint32_t>& alive, ArenaPlan& plan) const {
    int64_t end = 0;
    const auto add = [&](int64_t to) {
      if (to - end >= kLeastGap) plan.gap_list.push_back({place_of({bin, end}), to - end});
    };
    for (const uint32_t b : alive) {
      if (best_[b].bin != bin) continue;
      add(best_[b].offset);
      end = std::max(end, aligned(best_[b].offset + blocks_.list[b].bytes));
    }
    add(std::min(blocks_.bins[bin].bytes, blocks_.bins[bin].tensor.valid() ? INT64_MAX : bytes_));
  }

  const Program& program_;
  const Blocks blocks_;
  std::vector<Spot> best_;  // by block
  std::vector<Held> held_;  // by bin
  std::vector<std::pair<int64_t, int64_t>> taken_;
  int64_t bytes_ = 0;
};

}  // namespace

ArenaPlan plan_arena(const Program& program, const std::vector<int64_t>& numbers, std::span<const Scratch> scratch) {
  return Planner(program, numbers, scratch).run();
}

std::string explain_peak(const Program& program, const std::vector<int64_t>& numbers, const ArenaPlan& plan) {
  const Blocks blocks(program, numbers, {});
  const auto alive_at = [](const Block& block, uint32_t step) { return block.first <= step && step <= block.last; };
  uint32_t peak_step = 0;
  int64_t peak = 0;
  for (const Block& at : blocks.list) {  // the sum grows only where something comes to life
    int64_t sum = 0;
    for (const Block& block : blocks.list) sum += alive_at(block, at.first) ? block.bytes : 0;
    if (sum > peak) peak = sum, peak_step = at.first;
  }
  std::string text =
      fmt::format("arena of {} bytes; most, {} bytes, are alive at step {}:", plan.bytes, peak, peak_step);
  for (const Block& block : blocks.list) {
    if (block.bytes == 0 || !alive_at(block, peak_step)) continue;
    const TensorSlot& slot = program.tensors[block.tensor];
    const ArenaPlan::Place& place = plan.places[block.tensor];
    std::string sizes;
    for (const SizeRef size : slot.sizes) sizes += fmt::format("{}{}", sizes.empty() ? "" : ", ", numbers[size.index]);
    text += fmt::format("\n  {:>12} bytes at {:<10} steps {} to {}: {} {}[{}]", block.bytes, place.offset, block.first,
                        block.last, slot.name, to_string(slot.dtype), sizes);
    if (place.host.valid()) text += fmt::format(" in the memory of output {}", program.tensors[place.host.index].name);
  }
  return text;
}

}  // namespace cresset::runtime
