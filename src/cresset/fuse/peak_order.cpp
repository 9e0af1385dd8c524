#include "fuse/peak_order.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <set>
#include <tuple>
#include <unordered_map>

namespace cresset::fuse {
namespace {

// The graph's own order is kept unless the savings exceed these limits, because adjacent steps often find their data in
// caches.
constexpr int64_t kLeastPart = 32, kLeastBytes = 1 << 16;
constexpr size_t kMostCompared = 32;    // steps compared at a time: lists of optimizer updates have thousands
constexpr size_t kMostMoved = 6;        // values moved at a time, the largest
constexpr size_t kMostSteps = 50'000;   // total steps visited by the search for moves
constexpr size_t kStepsInPassing = 64;  // unmoved steps which cost as much as a moved step

// The reads and writes of a step, as indices into `values`.
struct Step {
  std::vector<uint32_t> reads, writes;
};

struct Value {
  int64_t bytes = 0;
  uint32_t writers = 0;
  bool stays = false;  // alive after the last step
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

  // An order, and the values alive in it.
  struct Timeline {
    std::vector<uint32_t> order;
    std::vector<uint32_t> made, last;  // by value: the first place which writes it, the last which mentions it
    std::vector<int64_t> held, bytes;  // by place: bytes alive before the step, and during it
  };
  Timeline timeline(std::vector<uint32_t> order) const {
    const auto count = static_cast<uint32_t>(order.size());
    Timeline out{std::move(order), std::vector<uint32_t>(values_.size(), count),
                 std::vector<uint32_t>(values_.size(), 0), std::vector<int64_t>(count, 0),
                 std::vector<int64_t>(count, 0)};
    for (uint32_t at = 0; at < count; ++at) {
      for (const uint32_t v : steps_[out.order[at]].writes) out.made[v] = std::min(out.made[v], at);
      for_each_value(steps_[out.order[at]], [&](uint32_t v) { out.last[v] = at; });
    }
    measure(out, out.order, 0, out.held, out.bytes);
    return out;
  }

  // The most bytes alive at the same time.
  struct Peak {
    int64_t bytes = 0;
    uint32_t at = 0;     // the first place in the order which reaches the peak
    uint32_t times = 0;  // number of places which reach it: equal layers reach it one after another
    bool operator<(const Peak& other) const { return std::tie(bytes, times) < std::tie(other.bytes, other.times); }
  };
  static Peak peak(const std::vector<int64_t>& bytes) {
    const auto most = std::max_element(bytes.begin(), bytes.end());
    if (most == bytes.end()) return {};
    return {*most, static_cast<uint32_t>(most - bytes.begin()),
            static_cast<uint32_t>(std::count(most, bytes.end(), *most))};
  }

  // Builds the order from the end. Of the steps which may come last, it takes the step before which the fewest bytes
  // are alive.
  std::vector<uint32_t> from_the_end() {
    const auto count = static_cast<uint32_t>(units_.size());
    waiting_.assign(count, 0);
    for (uint32_t u = 0; u < count; ++u) waiting_[u] = static_cast<uint32_t>(dependences_.users[u].size());
    alive_.assign(values_.size(), 0);
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

  // Reduces the peak as long as moves help. A move concerns a value alive but unused at the peak step: its producers or
  // its users go to the other side of the step.
  Timeline with_moves(Timeline now) const {
    Peak most = peak(now.bytes);
    std::vector<int64_t> held, bytes;
    for (size_t looked_at = 0; looked_at < kMostSteps;) {
      Part best;
      Peak least = most;
      for (const uint32_t v : waiting_at(now, most.at))
        for (const bool earlier : {true, false}) {
          Part part = moved(now, most.at, v, earlier);
          looked_at += part.units.size() + now.order.size() / kStepsInPassing;
          if (part.units.empty()) continue;
          bytes = now.bytes;
          measure(now, part.units, part.from, held, bytes);
          if (const Peak there = peak(bytes); there < least) best = std::move(part), least = there;
        }
      if (best.units.empty()) break;
      std::copy(best.units.begin(), best.units.end(), now.order.begin() + best.from);
      now = timeline(std::move(now.order)), most = least;
    }
    return now;
  }

 private:
  // Units which occupy the order from position `from` on.
  struct Part {
    uint32_t from = 0;
    std::vector<uint32_t> units;
  };

  // Computes the bytes alive before and during each step of a part. The part stands at position `from` instead of the
  // same number of steps. Before and after it, the timeline is unchanged.
  void measure(const Timeline& timeline, const std::vector<uint32_t>& part, uint32_t from, std::vector<int64_t>& held,
               std::vector<int64_t>& bytes) const {
    const auto end = from + static_cast<uint32_t>(part.size());
    alive_.resize(values_.size()), last_.resize(values_.size());
    for (uint32_t i = 0; i < part.size(); ++i)
      for_each_value(steps_[part[i]], [&](uint32_t v) {
        alive_[v] = timeline.made[v] < from;
        last_[v] = timeline.last[v] < end ? from + i : end;
      });
    held.resize(std::max<size_t>(held.size(), end));
    int64_t now = from == 0 ? 0 : timeline.held[from];
    for (uint32_t i = 0; i < part.size(); ++i) {
      const Step& step = steps_[part[i]];
      const auto dies = [&](uint32_t v) { return last_[v] == from + i && !values_[v].stays; };
      int64_t made = 0, over = 0, freed = 0;
      for (const uint32_t v : step.writes)
        if (!alive_[v]) made += values_[v].bytes, alive_[v] = true;
      for (const uint32_t v : step.reads)
        if (dies(v) && !units_[part[i]].node.valid() && fits_one_made(step, v)) over += values_[v].bytes;
      for_each_value(step, [&](uint32_t v) { freed += dies(v) ? values_[v].bytes : 0; });
      held[from + i] = now;
      now += made;
      bytes[from + i] = now - std::min(over, made);
      now -= freed;
    }
  }

  // The largest values made before a place and used after it, but not at it.
  std::vector<uint32_t> waiting_at(const Timeline& timeline, uint32_t place) const {
    std::vector<uint32_t> out;
    const Step& step = steps_[timeline.order[place]];
    const auto mentions = [&](uint32_t v) {
      return std::find(step.reads.begin(), step.reads.end(), v) != step.reads.end() ||
             std::find(step.writes.begin(), step.writes.end(), v) != step.writes.end();
    };
    for (uint32_t v = 0; v < values_.size(); ++v)
      if (timeline.made[v] < place && timeline.last[v] > place && values_[v].bytes >= kLeastBytes && !mentions(v))
        out.push_back(v);
    const size_t kept = std::min(out.size(), kMostMoved);
    std::partial_sort(out.begin(), out.begin() + static_cast<ptrdiff_t>(kept), out.end(),
                      [&](uint32_t a, uint32_t b) { return values_[a].bytes > values_[b].bytes; });
    out.resize(kept);
    return out;
  }

  // Returns the part of the order changed by a move. With `earlier`, users of `value` after the place come before it as
  // early as possible, together with their predecessors. Otherwise its producers and users before the place come after
  // it as late as possible, together with their successors. The part is empty when the step at the place would have to
  // move too.
  Part moved(const Timeline& timeline, uint32_t place, uint32_t value, bool earlier) const {
    const std::vector<uint32_t>& order = timeline.order;
    const auto count = static_cast<uint32_t>(order.size());
    std::vector<uint8_t> goes(count, 0);  // by unit
    const auto visit = [&](uint32_t u) {
      for_each_value(steps_[u], [&](uint32_t v) { goes[u] |= v == value ? 1 : 0; });
      if (goes[u] != 0)
        for (const uint32_t other : earlier ? before_[u] : dependences_.users[u]) goes[other] = 1;
    };
    // Only [begin, end) of the order is visited: no step outside mentions the value on this side of the place.
    const uint32_t begin = earlier ? place : timeline.made[value], end = earlier ? timeline.last[value] + 1 : place + 1;
    if (earlier)
      for (uint32_t at = end; at-- > begin;) visit(order[at]);
    else
      for (uint32_t at = begin; at < end; ++at) visit(order[at]);
    if (goes[order[place]] != 0) return {};
    std::vector<uint32_t> going, staying;
    std::vector<bool> bounds(count, false);  // by unit: the limit of the move
    for (uint32_t at = begin; at < end; ++at) {
      if (goes[order[at]] == 0) {
        staying.push_back(order[at]);
        continue;
      }
      going.push_back(order[at]);
      for (const uint32_t other : earlier ? before_[order[at]] : dependences_.users[order[at]]) bounds[other] = true;
    }
    Part part{begin, {}};
    if (earlier) {
      while (part.from > 0 && !bounds[order[part.from - 1]]) --part.from;
      part.units = std::move(going);
      part.units.insert(part.units.end(), order.begin() + part.from, order.begin() + begin);
      part.units.insert(part.units.end(), staying.begin(), staying.end());
    } else {
      uint32_t target = end;
      while (target < count && !bounds[order[target]]) ++target;
      part.units = std::move(staying);
      part.units.insert(part.units.end(), order.begin() + end, order.begin() + target);
      part.units.insert(part.units.end(), going.begin(), going.end());
    }
    return part;
  }

  template <class F>
  static void for_each_value(const Step& step, F&& f) {
    for (const uint32_t v : step.reads)
      if (std::find(step.writes.begin(), step.writes.end(), v) == step.writes.end()) f(v);
    for (const uint32_t v : step.writes) f(v);
  }
  // Whether a kernel may write its result in place of this read (lower/in_place.h).
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

  // Bytes by which the values alive before the step exceed the values alive after it.
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
  mutable std::vector<uint8_t> alive_;  // by value, scratch for traversals
  mutable std::vector<uint32_t> last_;  // scratch: the last place of each value
  std::vector<Value> values_;
  std::vector<Step> steps_;
  std::unordered_map<ValueId, uint32_t> places_;
  std::vector<std::vector<uint32_t>> before_;  // by unit: its predecessors
  std::vector<uint32_t> waiting_, writers_;    // of from_the_end()
};

}  // namespace

std::vector<uint32_t> order_of_least_peak(const Graph& graph, Memory& memory, const std::vector<Unit>& units,
                                          const Dependences& dependences, const std::vector<uint32_t>& position,
                                          std::vector<uint32_t> order) {
  Scheduler scheduler(graph, memory, units, dependences, position);
  const Scheduler::Timeline given = scheduler.timeline(std::move(order));
  const int64_t as_it_is = Scheduler::peak(given.bytes).bytes;
  if (as_it_is < kLeastBytes) return given.order;
  std::vector<uint32_t> best = given.order;
  int64_t least = as_it_is - std::max(kLeastBytes, as_it_is / kLeastPart) + 1;
  for (const bool from_the_end : {false, true}) {
    Scheduler::Timeline other =
        scheduler.with_moves(from_the_end ? scheduler.timeline(scheduler.from_the_end()) : given);
    const int64_t bytes = Scheduler::peak(other.bytes).bytes;
    if (bytes < least) best = std::move(other.order), least = bytes;
  }
  return best;
}

}  // namespace cresset::fuse
