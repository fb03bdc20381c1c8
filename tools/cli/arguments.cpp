// Arguments that several verbs take. Invariant: see arguments.hpp.
#include "cli/arguments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace fulcrum::cli {
namespace {

std::string arch_list() {
  std::string list;
  for (const int cc : supported_archs) list += std::string(list.empty() ? "" : ", ") + arch_name(Arch{cc});
  return list;
}

std::optional<Arch> parse_arch(const std::string& text) {
  for (const int cc : supported_archs) {
    const std::string name = arch_name(Arch{cc});
    const std::string number = std::to_string(cc);
    if (text == name || text == name.substr(3) || text == "sm_" + number || text == number) return Arch{cc};
  }
  return std::nullopt;
}

template <class E>
std::string names_of() {
  std::string list;
  const ValueNames names = value_names(E{});
  for (int32_t index = 0; index < names.count; ++index)
    list += (index > 0 ? ", " : "") + std::string(names.names[index]);
  return list;
}

template <class E>
std::optional<E> parse_name(const std::string& text) {
  const ValueNames names = value_names(E{});
  for (int32_t index = 0; index < names.count; ++index) {
    if (text == names.names[index]) return static_cast<E>(index);
  }
  return std::nullopt;
}

std::string lever_values(const LeverInfo& info) {
  std::string list;
  for (int32_t index = 0; index < info.values.count; ++index) {
    list += (index > 0 ? ", " : "") + std::string(info.values.names[index]);
  }
  return list.empty() ? "a number" : list;
}

}  // namespace

CLI::Option* add_arch(CLI::App* verb, std::optional<Arch>& arch, const std::string& words) {
  return verb->add_option_function<std::string>(
      "--arch",
      [&arch](const std::string& text) {
        arch = parse_arch(text);
        if (!arch) throw CLI::ValidationError("--arch", fmt::format("'{}' is not one of {}", text, arch_list()));
      },
      fmt::format("{}: {}", words, arch_list()));
}

CLI::Option* add_dtype(CLI::App* verb, std::optional<DType>& dtype, const std::string& words) {
  return verb->add_option_function<std::string>(
      "--dtype",
      [&dtype](const std::string& text) {
        dtype = parse_name<DType>(text);
        if (!dtype)
          throw CLI::ValidationError("--dtype", fmt::format("'{}' is not one of {}", text, names_of<DType>()));
      },
      words);
}

CLI::Option* add_projection(CLI::App* verb, Projection& projection, const std::string& words) {
  return verb->add_option_function<std::string>(
      "--projection",
      [&projection](const std::string& text) {
        const std::optional<Projection> parsed = parse_name<Projection>(text);
        if (!parsed) {
          throw CLI::ValidationError("--projection",
                                     fmt::format("'{}' is not one of {}", text, names_of<Projection>()));
        }
        projection = *parsed;
      },
      words);
}

CLI::Option* add_model(CLI::App* verb, harness::ModelRequest& model, const std::string& words) {
  CLI::Option* name = verb->add_option("--model", model.name, words);
  add_tensor_parallel(verb, model.tensor_parallel)->needs(name);
  return name;
}

CLI::Option* add_tensor_parallel(CLI::App* verb, uint32_t& degree) {
  return verb
      ->add_option("--tp", degree,
                   "tensor parallel ranks that share a model's experts: 1, 2, 4 or 8, where a rank's part of the "
                   "intermediate size is a multiple of 16")
      ->capture_default_str();
}

CLI::Option* add_tokens(CLI::App* verb, std::vector<uint32_t>& tokens, const std::string& words) {
  return verb->add_option("--tokens", tokens, words + ", separated by commas")
      ->delimiter(',')
      ->check(CLI::Range(1, 131072));
}

CLI::Option* add_config(CLI::App* verb, std::string& config, const std::string& words) {
  return verb->add_option("--config", config, words);
}

void add_lever_flags(CLI::App* verb, tuner::Pins& pins) {
  for (int32_t lever = 0; lever < num_levers; ++lever) {
    const LeverInfo& info = lever_infos[lever];
    std::string flag = std::string("--") + info.name;
    std::replace(flag.begin(), flag.end(), '_', '-');
    std::optional<int32_t>& pin = pins[static_cast<size_t>(lever)];
    CLI::Option* option = verb->add_option_function<std::string>(
        flag,
        [&pin, &info, flag](const std::string& text) {
          int32_t value = 0;
          if (!text::read_value(info, text.c_str(), 0, static_cast<int32_t>(text.size()), value)) {
            throw CLI::ValidationError(flag, fmt::format("'{}' is not {}", text, lever_values(info)));
          }
          pin = value;
        },
        fmt::format("{} ({})", info.sentence, lever_values(info)));
    option->group("Levers held still");
  }
}

void apply_pins(const tuner::Pins& pins, Config& config) {
  for (int32_t lever = 0; lever < num_levers; ++lever) {
    if (const auto& pin = pins[static_cast<size_t>(lever)]) set_lever(config, lever, *pin);
  }
}

}  // namespace fulcrum::cli
