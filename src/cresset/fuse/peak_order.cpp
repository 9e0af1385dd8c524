#include "fuse/peak_order.h"

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <set>
#include <unordered_map>

namespace cresset::fuse {
namespace {

// The program's own order is kept for what saves less: steps that stand together often find their data in caches.
constexpr int64_t kLeastPart = 32, kLeastBytes = 1 << 16;
constexpr size_t kMostCompared = 32;   // steps at a time: lists of optimizers' updates have thousands
constexpr size_t kMostMoved = 6;       // values at a time, the largest
constexpr size_t kMostSteps = 50'000;  // that the search for moves looks at

// What a step reads and writes, by places in `values`.
struct Step {
  std::vector<uint32_t> reads, writes;
};

struct Value {
  int64_t bytes = 0;
  uint32_t writers = 0;
  bool stays = false;  // after the last step
};

class Scheduler {
 public:
  Scheduler(const Graph& graph, Memory& memory, const std::vector<Unit>& units, const Dependences& dependences,
            const std::vector<uint32_t>& position)
      : graph_(graph), memory_(memory), units_(units), dependences_(dependences), position_(position) {
    for (const Unit& unit : units)
      for (const ValueId v : unit.writes) place_of(v);
    for (const Unit& unit : units) add(unit);
    for (const ValueId v : graph.outputs) stays(v);
    for (const graph::Mutation& m : graph.mutations) stays(m.value);
    before_.assign(units.size(), {});
    for (uint32_t u = 0; u < units.size(); ++u)
      for (const uint32_t user : dependences_.users[u]) before_[user].push_back(u);
  }

  // Bytes alive at once, where they are most.
  struct Peak {
    int64_t bytes = 0;
    uint32_t at = 0;  // place in the order
  };
  Peak peak(const std::vector<uint32_t>& order) const {
    std::vector<uint32_t> last(values_.size(), 0);
    for (uint32_t at = 0; at < order.size(); ++at) for_each_value(steps_[order[at]], [&](uint32_t v) { last[v] = at; });
    std::vector<bool> alive(values_.size(), false);
    int64_t held = 0;
    Peak most;
    for (uint32_t at = 0; at < order.size(); ++at) {
      const Step& step = steps_[order[at]];
      const auto dies = [&](uint32_t v) { return last[v] == at && !values_[v].stays; };
      int64_t made = 0, over = 0, freed = 0;
      for (const uint32_t v : step.writes)
        if (!alive[v]) made += values_[v].bytes, alive[v] = true;
      for (const uint32_t v : step.reads)
        if (dies(v) && !units_[order[at]].node.valid() && fits_one_made(step, v)) over += values_[v].bytes;
      for_each_value(step, [&](uint32_t v) { freed += dies(v) ? values_[v].bytes : 0; });
      held += made;
      if (const int64_t bytes = held - std::min(over, made); bytes > most.bytes) most = {bytes, at};
      held -= freed;
    }
    return most;
  }

  // From the end: of the steps that all others may follow, the one before which the fewest bytes are alive.
  std::vector<uint32_t> from_the_end() {
    const auto count = static_cast<uint32_t>(units_.size());
    waiting_.assign(count, 0);
    for (uint32_t u = 0; u < count; ++u) waiting_[u] = static_cast<uint32_t>(dependences_.users[u].size());
    alive_.assign(values_.size(), false);
    writers_.clear();
    for (const Value& v : values_) writers_.push_back(v.writers);
    for (uint32_t v = 0; v < values_.size(); ++v) alive_[v] = values_[v].stays;
    Ready ready;
    std::vector<uint32_t> order;
    for (uint32_t u = 0; u < count; ++u)
      if (waiting_[u] == 0) ready.emplace(position_[u], u);
    while (!ready.empty()) order.push_back(take(ready));
    std::reverse(order.begin(), order.end());
    return order;
  }

  // Moves what uses or makes a value that only waits where most is alive to the other side of that step, as long as
  // this helps.
  std::vector<uint32_t> with_moves(std::vector<uint32_t> order) const {
    Peak now = peak(order);
    size_t looked_at = 0;
    while (looked_at < kMostSteps) {
      std::vector<uint32_t> best;
      Peak least = now;
      for (const uint32_t v : waiting_at(order, now.at))
        for (const bool earlier : {true, false}) {
          std::vector<uint32_t> other = moved(order, now.at, v, earlier);
          looked_at += order.size();
          if (other.empty()) continue;
          if (const Peak there = peak(other); there.bytes < least.bytes) best = std::move(other), least = there;
        }
      if (best.empty()) break;
      order = std::move(best), now = least;
    }
    return order;
  }

 private:
  // The largest values that are made before a place and used after it, but not there.
  std::vector<uint32_t> waiting_at(const std::vector<uint32_t>& order, uint32_t place) const {
    std::vector<uint8_t> used(values_.size(), 0);  // bits: before, after
    for (uint32_t at = 0; at < order.size(); ++at)
      if (at != place) for_each_value(steps_[order[at]], [&](uint32_t v) { used[v] |= at < place ? 1 : 2; });
    for_each_value(steps_[order[place]], [&](uint32_t v) { used[v] = 0; });
    std::vector<uint32_t> out;
    for (uint32_t v = 0; v < values_.size(); ++v)
      if (used[v] == 3 && values_[v].bytes >= kLeastBytes) out.push_back(v);
    const size_t kept = std::min(out.size(), kMostMoved);
    std::partial_sort(out.begin(), out.begin() + static_cast<ptrdiff_t>(kept), out.end(),
                      [&](uint32_t a, uint32_t b) { return values_[a].bytes > values_[b].bytes; });
    out.resize(kept);
    return out;
  }

  // The order in which the steps that use `value` behind a place come before it, with what they need, as soon as they
  // may; or those that use it before come after, with what needs them, as late as they may. Empty: the step at that
  // place is one of these.
  std::vector<uint32_t> moved(const std::vector<uint32_t>& order, uint32_t place, uint32_t value, bool earlier) const {
    const auto count = static_cast<uint32_t>(order.size());
    std::vector<uint8_t> goes(count, 0);  // by unit
    const auto visit = [&](uint32_t u) {
      for_each_value(steps_[u], [&](uint32_t v) { goes[u] |= v == value ? 1 : 0; });
      if (goes[u] != 0)
        for (const uint32_t other : earlier ? before_[u] : dependences_.users[u]) goes[other] = 1;
    };
    uint32_t begin = 0, end = place + 1;  // of the part of the order that changes
    if (earlier) {
      for (uint32_t at = count; at-- > place;) visit(order[at]);
      begin = place, end = count;
    } else {
      for (uint32_t at = 0; at <= place; ++at) visit(order[at]);
    }
    if (goes[order[place]] != 0) return {};
    std::vector<uint32_t> going;
    for (uint32_t at = begin; at < end; ++at)
      if (goes[order[at]] != 0) going.push_back(order[at]);
    std::vector<bool> bounds(count, false);  // by unit: how far they may go
    for (const uint32_t u : going)
      for (const uint32_t other : earlier ? before_[u] : dependences_.users[u]) bounds[other] = true;
    uint32_t target = place;
    if (earlier)
      while (target > 0 && !bounds[order[target - 1]]) --target;
    else
      while (target + 1 < count && !bounds[order[target + 1]]) ++target;
    std::vector<uint32_t> out;
    const auto is_going = [&](uint32_t at) { return at >= begin && at < end && goes[order[at]] != 0; };
    for (uint32_t at = 0; at < count; ++at) {
      if (earlier && at == target) out.insert(out.end(), going.begin(), going.end());
      if (!is_going(at)) out.push_back(order[at]);
      if (!earlier && at == target) out.insert(out.end(), going.begin(), going.end());
    }
    return out;
  }

  template <class F>
  static void for_each_value(const Step& step, F&& f) {
    for (const uint32_t v : step.reads)
      if (std::find(step.writes.begin(), step.writes.end(), v) == step.writes.end()) f(v);
    for (const uint32_t v : step.writes) f(v);
  }
  // A kernel may write where it reads (lower/in_place.h).
  bool fits_one_made(const Step& step, uint32_t read) const {
    return std::any_of(step.writes.begin(), step.writes.end(), [&](uint32_t w) {
      return w != read && values_[w].bytes == values_[read].bytes && values_[w].writers == 1;
    });
  }

  uint32_t place_of(ValueId v) {
    const auto [it, added] = places_.emplace(v, static_cast<uint32_t>(values_.size()));
    if (added) values_.push_back({bytes_of(v), 0, false});
    return it->second;
  }
  int64_t bytes_of(ValueId v) {
    const graph::TensorType& type = graph_.type(v);
    const Place* place = memory_.find(v);
    const ExprId elements =
        place != nullptr ? span(graph_.env(), type.sizes, place->layout) : graph::numel(graph_.pool(), type.sizes);
    return std::max<int64_t>(0, graph_.env().typical_or(elements, 0)) * static_cast<int64_t>(byte_size(type.dtype));
  }
  void add(const Unit& unit) {
    Step step;
    for (const ValueId v : unit.writes) {
      const uint32_t at = place_of(v);
      if (std::find(step.writes.begin(), step.writes.end(), at) != step.writes.end()) continue;
      step.writes.push_back(at);
      ++values_[at].writers;
    }
    for (const ValueId v : unit.reads)
      if (const auto it = places_.find(v); it != places_.end()) step.reads.push_back(it->second);
    steps_.push_back(std::move(step));
  }
  void stays(ValueId v) {
    const Place* place = memory_.find(v);
    if (place == nullptr) return;
    if (const auto it = places_.find(place->base); it != places_.end()) values_[it->second].stays = true;
  }

  // Bytes by which what is alive before the step exceeds what is alive after it.
  int64_t growth(uint32_t u) const {
    int64_t bytes = 0;
    for (const uint32_t v : steps_[u].reads)
      if (!alive_[v]) bytes += values_[v].bytes;
    for (const uint32_t v : steps_[u].writes)
      if (alive_[v] && writers_[v] == 1) bytes -= values_[v].bytes;
    return bytes;
  }
  using Ready = std::set<std::pair<uint32_t, uint32_t>, std::greater<>>;  // position, unit: the last first
  uint32_t take(Ready& ready) {
    auto best = ready.begin();
    int64_t least = growth(best->second);
    size_t seen = 1;
    for (auto it = std::next(best); it != ready.end() && seen < kMostCompared; ++it, ++seen)
      if (const int64_t bytes = growth(it->second); bytes < least) best = it, least = bytes;
    const uint32_t u = best->second;
    ready.erase(best);
    for (const uint32_t v : steps_[u].writes)
      if (--writers_[v] == 0) alive_[v] = false;
    for (const uint32_t v : steps_[u].writes)
      if (writers_[v] != 0) alive_[v] = true;
    for (const uint32_t v : steps_[u].reads)
      if (writers_[v] != 0) alive_[v] = true;
    for (const uint32_t w : before_[u])
      if (--waiting_[w] == 0) ready.emplace(position_[w], w);
    return u;
  }

  const Graph& graph_;
  Memory& memory_;
  const std::vector<Unit>& units_;
  const Dependences& dependences_;
  const std::vector<uint32_t>& position_;
  std::vector<Value> values_;
  std::vector<Step> steps_;
  std::unordered_map<ValueId, uint32_t> places_;
  std::vector<std::vector<uint32_t>> before_;  // by unit: what comes before it
  // Of from_the_end().
  std::vector<uint32_t> waiting_, writers_;
  std::vector<bool> alive_;
};

}  // namespace

std::vector<uint32_t> order_of_least_peak(const Graph& graph, Memory& memory, const std::vector<Unit>& units,
                                          const Dependences& dependences, const std::vector<uint32_t>& position,
                                          std::vector<uint32_t> order) {
  Scheduler scheduler(graph, memory, units, dependences, position);
  const int64_t as_it_is = scheduler.peak(order).bytes;
  if (as_it_is < kLeastBytes) return order;
  std::vector<uint32_t> best = order;
  int64_t least = as_it_is - std::max(kLeastBytes, as_it_is / kLeastPart) + 1;
  for (const std::vector<uint32_t>& other :
       std::array{scheduler.with_moves(order), scheduler.with_moves(scheduler.from_the_end())}) {
    const int64_t bytes = scheduler.peak(other).bytes;
    if (bytes < least) best = other, least = bytes;
  }
  return best;
}

}  // namespace cresset::fuse
