#include "compile/program_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "base/log.h"
#include "base/options.h"
#include "codegen/files.h"
#include "compile/code_for_devices.h"
#include "compile/version.h"
#include "graph/canonical.h"
#include "runtime/serialize.h"
#include "runtime/verify.h"
#include "sym/parse.h"

namespace cresset::driver {
namespace {

constexpr std::string_view kAssertion = "assert ";

// A file begins with a line for the number of nodes after the passes. Each guard recorded by lowering has a line, and
// each assertion on data-dependent sizes has two. An empty line ends the header.
std::string header(const Stats& stats, const sym::ShapeEnv& env, const sym::Asked& before) {
  std::string out = fmt::format("{}\n", stats.nodes_after_passes);
  for (const sym::SizeGuard& guard : env.guards().subspan(before.guards)) out += env.to_string(guard.condition) + '\n';
  for (const sym::RuntimeAssertion& assertion : env.assertions().subspan(before.assertions)) {
    std::string message = assertion.message;
    std::replace(message.begin(), message.end(), '\n', ' ');
    out += fmt::format("{}{}\n{}\n", kAssertion, env.to_string(assertion.condition), message);
  }
  return out + '\n';
}

// Removes the first line from the text and returns it.
std::optional<std::string_view> take_line(std::string_view& text) {
  const size_t end = text.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end + 1);
  return line;
}

// A condition recorded by lowering: a guard, or an assertion on data-dependent sizes with its error message.
struct Line {
  sym::ExprId condition;
  std::optional<std::string> message;
};

std::optional<std::vector<Line>> take_lines(std::string_view& text, sym::ShapeEnv& env, const sym::VarIds& names) {
  std::vector<Line> out;
  for (;;) {
    const std::optional<std::string_view> line = take_line(text);
    if (!line) return std::nullopt;
    if (line->empty()) return out;
    const bool is_assertion = line->starts_with(kAssertion);
    const Result<sym::ExprId> condition =
        sym::parse(env.pool(), line->substr(is_assertion ? kAssertion.size() : 0), names);
    if (!condition.ok()) return std::nullopt;
    out.push_back({*condition, std::nullopt});
    if (!is_assertion) continue;
    const std::optional<std::string_view> message = take_line(text);
    if (!message) return std::nullopt;
    out.back().message = std::string(*message);
  }
}

// Reads the header. Returns false when the guards do not hold for this call or cannot be parsed. No guard is recorded
// in this case. Otherwise the new lowering would be bound to the negation of a guard which it may not need.
bool take_header(std::string_view& text, sym::ShapeEnv& env, const sym::VarIds& names, Stats& stats) {
  const std::optional<std::string_view> nodes = take_line(text);
  if (!nodes) return false;
  std::from_chars(nodes->data(), nodes->data() + nodes->size(), stats.nodes_after_passes);
  const std::optional<std::vector<Line>> lines = take_lines(text, env, names);
  const auto may_hold = [&](const Line& line) {
    return line.message || env.known_true(line.condition) || env.hint_or(line.condition, 1) != 0;
  };
  const auto record = [&](const Line& line) {
    if (line.message) return env.assume(line.condition, *line.message);
    return env.evaluate(line.condition, [] { return sym::Reason{}; }).value_or(false);
  };
  return lines && std::all_of(lines->begin(), lines->end(), may_hold) &&
         std::all_of(lines->begin(), lines->end(), record);
}

// Returns the targets of all devices with values in the graph, or of the CPU for a graph without values. Returns
// nullopt when a backend does not use the disk.
std::optional<std::string> target_texts(const graph::Graph& graph) {
  std::set<DeviceKind> devices;
  for (uint32_t i = 0; i < graph.value_count(); ++i) devices.insert(graph.type({i}).device.kind);
  if (devices.empty()) devices.insert(DeviceKind::Cpu);
  std::string texts;
  for (const DeviceKind device : devices) {
    codegen::Backend* const backend = codegen::backend_of(device);
    if (backend == nullptr || !backend->uses_disk()) return std::nullopt;
    texts += backend->target_text() + "\n";
  }
  return texts;
}

}  // namespace

ProgramCache::ProgramCache(const graph::Graph& graph, const Options& options) {
  if (log::enabled(log::Area::Kernels) || option_flag(Option::PROFILE_KERNELS)) return;
  if (options.taker != nullptr) {
    CRESSET_LOG(Cache, "no file: another compiler takes the graph");
    return;
  }
  const std::optional<std::string> targets = target_texts(graph);
  if (!targets) {
    CRESSET_LOG(Cache, "no file: the disk cache is off");
    return;
  }
  const std::string graph_text = graph::canonical_text(graph);
  made_by_ = fmt::format("rounding {} fuse {} apart {}\n{}\n{}", options.eager_rounding, options.fuse,
                         options.constants_apart, kCompilerVersion, *targets);
  const std::string key = fmt::format("{}\n{}\n", graph_text, made_by_);
  const std::string folder = codegen::default_cache_folder() + "/programs/";
  path_ = folder + codegen::content_hash(key);
  made_by_path_ = codegen::default_cache_folder() + "/graphs/" + codegen::content_hash(graph_text);
  CRESSET_LOG(Cache, path_ + "\n" + key);
}

std::string ProgramCache::why_absent() const {
  const std::optional<std::string> last = codegen::read_checked(made_by_path_);
  if (!last) return "no program of this graph is known";
  if (*last == made_by_) return "its file was deleted, or is damaged";
  constexpr std::string_view kParts[] = {"the options", "cresset's version"};
  std::string_view then = *last, now = made_by_;
  for (const std::string_view part : kParts) {
    const std::string_view was = take_line(then).value_or(""), is = take_line(now).value_or("");
    if (was != is) return fmt::format("{} were other: {}, now {}", part, was, is);
  }
  return fmt::format("it was made for another processor or LLVM: {}; here: {}", then.substr(0, then.find('\n')),
                     now.substr(0, now.find('\n')));
}

void ProgramCache::log_miss(std::string_view why) const {
  CRESSET_LOG(Cache, fmt::format("miss of {}: {}", path_, why));
}

std::optional<Compiled> ProgramCache::load(const graph::Graph& graph) const {
  if (path_.empty()) return std::nullopt;
  const std::optional<std::string> bytes = codegen::read_checked(path_);
  if (!bytes) {
    if (log::enabled(log::Area::Cache)) log_miss(why_absent());
    return std::nullopt;
  }
  const auto miss = [&](std::string_view why) {
    log_miss(why);
    return std::nullopt;
  };
  sym::VarIds names;
  for (const auto& [var, name] : graph.env().names()) names.emplace(name, var);
  Compiled compiled;
  std::string_view text = *bytes;
  if (!take_header(text, graph.env(), names, compiled.stats)) return miss("its guards do not hold for this call");
  auto loaded = runtime::from_bytes(text, [&](const std::string& name) -> std::optional<sym::VarId> {
    const auto it = names.find(name);
    return it == names.end() ? std::nullopt : std::optional(it->second);
  });
  if (!loaded) return miss("its file cannot be read");
  auto kernels = find_code(loaded->kernels);
  if (!kernels) return miss("the file of a kernel was deleted, or cannot be linked");
  loaded->program.kernels = std::move(*kernels);
  if (!runtime::verify(loaded->program).empty()) return miss("its file is no valid program");
  // The current source locations, if their number matches.
  if (loaded->program.locations.size() == graph.locations.size()) loaded->program.locations = graph.locations;
  compiled.program = std::move(loaded->program);
  compiled.stats.programs_from_disk = 1;
  CRESSET_LOG(Cache, fmt::format("hit of {}", path_));
  return compiled;
}

ProgramCache::Entry ProgramCache::entry(const Stats& stats, const sym::ShapeEnv& env, const sym::Asked& before) const {
  Entry entry;
  if (path_.empty()) return entry;
  entry.path_ = path_;
  entry.made_by_path_ = made_by_path_;
  entry.made_by_ = made_by_;
  entry.header_ = header(stats, env, before);
  entry.names_ = env.names();
  return entry;
}

void ProgramCache::Entry::store(const Compiled& compiled) const {
  if (path_.empty()) return;
  const std::optional<std::string> bytes = runtime::to_bytes(compiled.program, names_);
  if (!bytes) return;
  codegen::write_checked(path_, header_ + *bytes);
  codegen::write_checked(made_by_path_, made_by_);
}

}  // namespace cresset::driver
