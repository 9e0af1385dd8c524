#include "runtime/arena_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace cresset::runtime {
namespace {

using Part = ArenaPlan::Part;

constexpr int64_t kAlignment = 64;
constexpr int64_t kLeastGap = 4096;
constexpr uint32_t kNone = UINT32_MAX;
// A plan is good enough within 1/kTolerance of the lower bound, or when it wastes less than kSmallWaste. Until then
// blocks are placed again, with about kPlacements placements in total. Outputs smaller than 1/kTolerance of the peak of
// live bytes do not lend their memory: they would be held longer for a small saving. Outputs allocated after the last
// use of the arena must have at least 1/kSmallPart of the peak to lend, because the arena is released first.
constexpr int64_t kTolerance = 64, kSmallPart = 4, kSmallWaste = 1 << 16;
constexpr size_t kPlacements = 4096, kMostRounds = 32;

int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// A contiguous piece of memory: a tensor and the tensors which continue it.
struct Block {
  uint32_t tensor;  // kNone: an operator's scratch
  int64_t bytes;
  uint32_t first, last;
  uint32_t output = kNone;       // the last tensor is an output: all lie in its memory
  std::vector<uint32_t> rivals;  // blocks alive at the same time
  int64_t alive = 0;             // bytes alive when the block begins, itself included
};

// A region which contains blocks.
struct Bin {
  TensorId tensor;  // an output; invalid: an arena
  int64_t bytes;    // INT64_MAX: it grows
  uint32_t first;   // from this step on it accepts no blocks
  uint32_t held;    // of an output: from this step on it is allocated in any case
};

// The steps in which a bin is allocated because blocks lie in it.
struct Held {
  uint32_t from = kNone, end = 0;
};

struct Blocks {
  Blocks(const Program& program, const std::vector<int64_t>& numbers, std::span<const Scratch> scratch);

  std::vector<Block> list;   // by first step
  std::vector<uint32_t> of;  // by tensor
  std::vector<Bin> bins;     // outputs from the smallest to the largest, then the arenas by part
  std::vector<uint32_t> bin_of_output;
  int64_t alive = 0, least = 0;  // least: a lower bound of the arena's size
  uint32_t needed = 0;           // from this step on the arena is unused

  uint32_t arena(Part part = Part::Whole) const {
    return static_cast<uint32_t>(bins.size() - 3 + static_cast<size_t>(part));
  }
  // The step between the arenas Before and After; 0: these arenas are not used.
  uint32_t turn = 0;
  // The arena for a block which lives only before the turn, or only after it.
  Part part_of(const Block& block) const {
    return turn == 0 ? Part::Whole : block.last < turn ? Part::Before : block.first >= turn ? Part::After : Part::Whole;
  }

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

// The device of the arena; that of no tensor, where none lies in the arena.
static std::optional<graph::Device> arena_device(const Program& program) {
  for (const TensorSlot& slot : program.tensors)
    if (slot.home == Home::Arena) return slot.device;
  return std::nullopt;
}

void Blocks::add_bins(const Program& program, const std::vector<int64_t>& numbers) {
  const std::optional<graph::Device> device = arena_device(program);
  for (const Block& block : list)
    if (block.output == kNone && block.bytes != 0)
      needed = std::max(needed, block.last == kNone ? kNone : block.last + 1);
  for (uint32_t t = 0; t < program.tensors.size(); ++t) {
    const TensorSlot& slot = program.tensors[t];
    const int64_t bytes = numbers[slot.bytes.index];
    if (slot.home != Home::Fresh || slot.device != device) continue;
    const int64_t least = std::max(kLeastGap, alive / (slot.first_step >= needed ? kSmallPart : kTolerance));
    if (bytes < least && !slot.continues.valid()) continue;
    const uint32_t block = of[t];
    bins.push_back({{t}, bytes, slot.first_step, block == kNone ? slot.first_step : list[block].first});
  }
  std::stable_sort(bins.begin(), bins.end(), [](const Bin& a, const Bin& b) { return a.bytes < b.bytes; });
  bin_of_output.assign(program.tensors.size(), kNone);
  for (uint32_t b = 0; b < bins.size(); ++b) bin_of_output[bins[b].tensor.index] = b;
  bins.resize(bins.size() + 3, {{}, INT64_MAX, kNone, 0});
}

void Blocks::add(const Program& program, const std::vector<int64_t>& numbers) {
  const auto& tensors = program.tensors;
  of.assign(tensors.size(), kNone);
  std::vector<uint32_t> of_head(tensors.size(), kNone);
  for (uint32_t t = 0; t < tensors.size(); ++t) {
    const TensorSlot& slot = tensors[t];
    uint32_t head = t;  // a tensor may continue a later tensor of the list
    while (tensors[head].continues.valid()) head = tensors[head].continues.index;
    // A tensor which continues an ATen-allocated result is in no arena. An output which continues no tensor is only a
    // bin.
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
      : program_(program), blocks_(program, numbers, scratch) {
    for (uint32_t t = 0; t < program.tensors.size(); ++t) {
      const TensorSlot& slot = program.tensors[t];
      if (slot.home != Home::Fresh || slot.first_step > slot.last_step) continue;
      const uint32_t block = blocks_.of[t];
      outputs_.emplace_back(block == kNone ? slot.first_step : blocks_.list[block].first, numbers[slot.bytes.index]);
    }
  }

  ArenaPlan run() {
    find_best();
    split();
    ArenaPlan plan;
    std::copy(std::begin(best_.bytes), std::end(best_.bytes), plan.bytes);
    plan.turn = blocks_.turn;
    plan.alive = blocks_.alive;
    plan.places.resize(program_.tensors.size());
    for (uint32_t t = 0; t < blocks_.of.size(); ++t)
      if (blocks_.of[t] != kNone) plan.places[t] = place_of(best_.spots[blocks_.of[t]]);
    hold_bins(plan);
    find_gaps(plan);
    return plan;
  }

 private:
  struct Spot {
    uint32_t bin = kNone;  // kNone: not placed yet
    int64_t offset = 0;
  };
  struct Layout {
    std::vector<Spot> spots;   // by block
    int64_t bytes[3] = {};     // of the arenas
    int64_t most = INT64_MAX;  // the most bytes held at a time, outputs included
  };

  ArenaPlan::Place place_of(const Spot& spot) const {
    const bool in_output = spot.bin < blocks_.arena();
    return {blocks_.bins[spot.bin].tensor, spot.offset,
            in_output ? Part::Whole : static_cast<Part>(spot.bin - blocks_.arena())};
  }

  int64_t outputs_before(uint32_t step) const {
    int64_t bytes = 0;
    for (const auto& [from, size] : outputs_) bytes += from < step ? size : 0;
    return bytes;
  }

  void find_best() {
    std::vector<uint32_t> order(blocks_.list.size());
    for (uint32_t b = 0; b < order.size(); ++b) order[b] = b;
    improve(order);  // in the order of their first steps
    std::stable_sort(order.begin(), order.end(),
                     [this](uint32_t a, uint32_t b) { return blocks_.list[a].bytes > blocks_.list[b].bytes; });
    improve(order);  // large blocks first: small blocks fit between them
  }

  // Splits the arena at a turn if this reduces the bytes held. Candidates are the steps before which an output is
  // allocated, and the step after the peak.
  void split() {
    constexpr size_t kMostSteps = 4;
    std::vector<std::pair<int64_t, uint32_t>> steps;  // by the bytes allocated there
    for (const auto& [from, size] : outputs_)
      if (from != 0 && size >= blocks_.alive / kTolerance) steps.emplace_back(size, from);
    if (steps.empty() || blocks_.list.empty()) return;
    std::sort(steps.rbegin(), steps.rend());
    steps.resize(std::min(steps.size(), kMostSteps));
    const auto fullest = std::max_element(blocks_.list.begin(), blocks_.list.end(),
                                          [](const Block& a, const Block& b) { return a.alive < b.alive; });
    steps.emplace_back(0, fullest->first + 1);
    const int64_t bound = best_.most - std::max(best_.most / kTolerance, kSmallWaste);
    least_ = bound;
    uint32_t step = 0;
    for (const auto& [size, from] : steps)
      if (const int64_t needed = least_with_turn(from); needed < least_) least_ = needed, step = from;
    if (step == 0) return;
    Layout whole;
    std::swap(whole, best_);
    blocks_.turn = step;
    find_best();
    if (best_.most < bound) return;
    std::swap(whole, best_);
    blocks_.turn = 0;
  }

  // A lower bound for a turn: all blocks alive across the turn are alive at the same time.
  int64_t least_with_turn(uint32_t turn) const {
    int64_t across = 0;
    for (const Block& block : blocks_.list)
      if (block.output == kNone && block.first < turn && turn <= block.last) across += block.bytes;
    const int64_t before = most_alive([&](const Block& block) { return block.last < turn; });
    const int64_t after = most_alive([&](const Block& block) { return block.first >= turn; });
    return across + std::max(before + outputs_before(turn), after + outputs_before(blocks_.needed));
  }

  template <class F>
  int64_t most_alive(F&& counts) const {
    std::vector<const Block*> together;
    int64_t sum = 0, most = 0;
    for (const Block& at : blocks_.list) {
      if (at.output != kNone || !counts(at)) continue;
      std::erase_if(together, [&](const Block* block) {
        const bool dead = block->last < at.first;
        if (dead) sum -= block->bytes;
        return dead;
      });
      together.push_back(&at);
      most = std::max(most, sum += at.bytes);
    }
    return most;
  }

  int64_t held_before(const Layout& layout) const {
    return layout.bytes[0] + layout.bytes[1] + outputs_before(blocks_.turn);
  }
  int64_t held_after(const Layout& layout) const {
    return layout.bytes[0] + layout.bytes[2] + outputs_before(blocks_.needed);
  }

  bool good_enough() const {
    if (best_.spots.empty()) return false;
    if (blocks_.turn != 0) return best_.most <= least_ + std::max(least_ / kTolerance, kSmallWaste);
    return best_.bytes[0] <= blocks_.least + std::max(blocks_.least / kTolerance, kSmallWaste);
  }

  // Places all blocks in this order, then repeatedly with the highest block placed first.
  void improve(std::vector<uint32_t> order) {
    const size_t rounds = std::clamp<size_t>(kPlacements / std::max<size_t>(order.size(), 1), 2, kMostRounds);
    for (size_t round = 0; round < rounds && !good_enough(); ++round) {
      const uint32_t highest = place(order);
      if (highest == kNone) return;
      const auto it = std::find(order.begin(), order.end(), highest);
      std::rotate(order.begin(), it, it + 1);
    }
  }

  // Places each block in the tightest gap between its placed rivals, in the smallest bin with such a gap. Blocks for
  // the whole arena come first; the remaining blocks do not enlarge it. The layout is kept when it beats the best
  // layout. Returns the block at the end of the memory peak.
  uint32_t place(const std::vector<uint32_t>& order) {
    Layout layout;
    std::vector<Spot>& spots = layout.spots;
    spots.resize(blocks_.list.size());
    for (uint32_t b = 0; b < spots.size(); ++b)
      if (blocks_.list[b].output != kNone) spots[b] = {blocks_.bin_of_output[blocks_.list[b].output], 0};
    uint32_t highest[3] = {kNone, kNone, kNone};
    const auto put = [&](uint32_t b) {
      const Block& block = blocks_.list[b];
      if (block.bytes == 0) spots[b] = {blocks_.arena(), 0};
      const auto own = static_cast<size_t>(blocks_.part_of(block));
      for (uint32_t bin = 0; spots[b].bin == kNone; bin = bin == blocks_.arena() ? bin + own : bin + 1)
        if (const int64_t offset = tightest_gap(block, bin, layout); offset >= 0) spots[b] = {bin, offset};
      if (spots[b].bin < blocks_.arena()) return;
      const uint32_t part = spots[b].bin - blocks_.arena();
      const int64_t end = spots[b].offset + block.bytes;
      if (end > layout.bytes[part]) layout.bytes[part] = end, highest[part] = b;
    };
    for (const bool whole : {true, false})
      for (const uint32_t b : order)
        if (const Block& block = blocks_.list[b];
            block.output == kNone && whole == (blocks_.part_of(block) == Part::Whole))
          put(b);
    const int64_t before = held_before(layout), after = held_after(layout);
    layout.most = std::max(before, after);
    const uint32_t ends = highest[blocks_.turn == 0 ? 0 : before > after ? 1 : 2];
    if (layout.most < best_.most) best_ = std::move(layout);
    return ends != kNone ? ends : highest[0];
  }

  // Returns -1 if there is no gap.
  int64_t tightest_gap(const Block& block, uint32_t bin, const Layout& layout) {
    const Bin& room = blocks_.bins[bin];
    int64_t bytes = room.bytes;
    if (room.tensor.valid()) {
      if (block.bytes > bytes || block.last >= room.first) return -1;
      if (blocks_.turn != 0 && block.first < room.held) return -1;
    } else if (bin == blocks_.arena() && blocks_.part_of(block) != Part::Whole) {
      bytes = layout.bytes[0];
    }
    taken_.clear();
    for (const uint32_t rival : block.rivals)
      if (layout.spots[rival].bin == bin)
        taken_.emplace_back(layout.spots[rival].offset, layout.spots[rival].offset + blocks_.list[rival].bytes);
    std::sort(taken_.begin(), taken_.end());
    int64_t end = 0, best = -1, best_gap = 0;
    for (const auto& [from, to] : taken_) {
      const int64_t gap = from - end;
      if (gap >= block.bytes && (best < 0 || gap < best_gap)) best = end, best_gap = gap;
      end = std::max(end, to);
    }
    if (best >= 0) return best;
    return block.bytes <= bytes - end ? end : -1;
  }

  // Bins are held from their first block to their last. Outputs are held until they are written, and the arena until an
  // output is allocated after its last use.
  void hold_bins(ArenaPlan& plan) {
    held_.resize(blocks_.bins.size());
    for (uint32_t b = 0; b < best_.spots.size(); ++b) {
      const Block& block = blocks_.list[b];
      if (block.bytes == 0) continue;
      Held& held = held_[best_.spots[b].bin];
      held.from = std::min(held.from, block.first);
      held.end = std::max(held.end, block.last == kNone ? kNone : block.last + 1);
    }
    for (size_t bin = 0; bin < blocks_.arena(); ++bin) held_[bin].end = blocks_.bins[bin].first;
    Held& arena = held_[blocks_.arena()];
    arena.end = std::max(arena.end, held_[blocks_.arena(Part::After)].end);
    for (const TensorSlot& slot : program_.tensors)
      if (slot.home == Home::Fresh && slot.first_step >= arena.end && slot.first_step <= slot.last_step)
        plan.end = std::min(plan.end, slot.first_step);
    arena = {0, plan.end};
    if (plan.turn == 0) return;
    held_[blocks_.arena(Part::Before)] = {0, plan.turn};
    held_[blocks_.arena(Part::After)] = {plan.turn, plan.end};
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
                [this](uint32_t a, uint32_t b) { return best_.spots[a].offset < best_.spots[b].offset; });
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
      const Spot& spot = best_.spots[b];
      if (spot.bin != bin) continue;
      add(spot.offset);
      end = std::max(end, aligned(spot.offset + blocks_.list[b].bytes));
    }
    add(bin < blocks_.arena() ? blocks_.bins[bin].bytes : best_.bytes[bin - blocks_.arena()]);
  }

  const Program& program_;
  Blocks blocks_;
  std::vector<std::pair<uint32_t, int64_t>> outputs_;  // first step, bytes
  Layout best_;
  std::vector<Held> held_;  // by bin
  std::vector<std::pair<int64_t, int64_t>> taken_;
  int64_t least_ = 0;  // a lower bound with a turn
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
  for (const Block& at : blocks.list) {  // the sum grows only where a block begins
    int64_t sum = 0;
    for (const Block& block : blocks.list) sum += alive_at(block, at.first) ? block.bytes : 0;
    if (sum > peak) peak = sum, peak_step = at.first;
  }
  std::string text =
      fmt::format("arena of {} bytes; most, {} bytes, are alive at step {}:", plan.bytes[0], peak, peak_step);
  if (plan.turn != 0)
    text = fmt::format("arenas of {} bytes before step {} and of {} from then on, beside an {}", plan.bytes[1],
                       plan.turn, plan.bytes[2], text);
  for (const Block& block : blocks.list) {
    if (block.bytes == 0 || !alive_at(block, peak_step)) continue;
    const TensorSlot& slot = program.tensors[block.tensor];
    const ArenaPlan::Place& place = plan.places[block.tensor];
    std::string sizes;
    for (const SizeRef size : slot.sizes) sizes += fmt::format("{}{}", sizes.empty() ? "" : ", ", numbers[size.index]);
    text += fmt::format("\n  {:>12} bytes at {:<10} steps {} to {}: {} {}[{}]", block.bytes, place.offset, block.first,
                        block.last, slot.name, to_string(slot.dtype), sizes);
    if (place.part != Part::Whole) text += place.part == Part::Before ? " before the turn" : " after the turn";
    if (place.host.valid()) text += fmt::format(" in the memory of output {}", program.tensors[place.host.index].name);
  }
  return text;
}

}  // namespace cresset::runtime
