#include <iostream>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "main/command_line.h"
#include "main/help.h"

namespace troupe {
namespace {

// Text as troff takes it. `literal`: dashes are typed by people, and not for hyphens.
std::string escaped(std::string_view text, bool literal = false) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-' && literal) {
      out += "\\-";
    } else if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) {
      out += fmt::format("\\&{}", c);
    } else {
      out += c;
    }
  }
  return out;
}

std::string described(const std::string& title, const std::string& text) {
  return fmt::format(".TP\n\\fB{}\\fR\n{}\n", escaped(title, true), escaped(text));
}

std::string verb_section(const Command& verb) {
  std::string out = fmt::format(".SS troupe {}\n.nf\n", escaped(verb.name, true));
  for (const std::string& form : forms_of(verb)) {
    out += fmt::format("\\fBtroupe\\fR {}\n", escaped(form, true));
  }
  out += fmt::format(".fi\n.PP\n{}\n", escaped(verb.about));
  for (const Option& option : shown_options(verb)) {
    out += described(option_title(option), option_text(option));
  }
  return out +
         fmt::format(".PP\nExample:\n.PP\n.nf\n.RS\n{}\n.RE\n.fi\n", escaped(verb.example, true));
}

std::string exit_status() {
  std::string out = ".SH EXIT STATUS\n";
  for (const auto& [code, meaning] :
       {std::pair{"0", "Done."},
        {"1", "An internal error, or one of the environment."},
        {"2", "A command line that is wrong."},
        {"3", "A topology that is wrong."},
        {"4", "Data or a checkpoint that cannot be read or written."},
        {"5", "The head or all members were lost, or cannot be reached."},
        {"6", "The training has diverged."},
        {"129, 130, 143", "Ended by SIGHUP, SIGINT or SIGTERM."},
        {"141", "Nobody reads standard output any more."}}) {
    out += described(code, meaning);
  }
  return out;
}

// The page is made of the same tables as --help, in the order in which man wants its sections.
int print_manual(const CommandLine&) {
  std::string out = ".TH TROUPE 1 \"\" \"troupe " TROUPE_VERSION
                    "\" \"User Commands\"\n"
                    ".SH NAME\ntroupe \\- train generative models of particle detectors\n"
                    ".SH SYNOPSIS\n.nf\n";
  for (const Command* verb : shown_verbs()) {
    for (const std::string& form : forms_of(*verb)) {
      out += fmt::format("\\fBtroupe\\fR {}\n", escaped(form, true));
    }
  }
  out += fmt::format(".fi\n.SH DESCRIPTION\n{}\n.SH VERBS\n", escaped(kProgramAbout));
  for (const Command* verb : shown_verbs()) out += verb_section(*verb);
  std::cout << out << exit_status();
  return 0;
}

}  // namespace

Command manual_verb() {
  return {.name = "manual",
          .summary = "the manual page",
          .about = "Prints the manual page troupe(1), as man reads it.",
          .example = "troupe manual",
          .hidden = true,
          .carry_out = print_manual};
}

}  // namespace troupe
