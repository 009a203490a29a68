// Light or dark: the system's setting, or the user's choice.

const themes = ["auto", "light", "dark"];

export function startTheme(button) {
  let theme = themes.includes(remembered()) ? remembered() : "auto";
  const show = () => {
    document.documentElement.dataset.theme = theme;
    button.textContent = `Theme: ${theme}`;
  };
  button.addEventListener("click", () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    try {
      localStorage.setItem("theme", theme);
    } catch {
      // The choice lasts until the page is closed.
    }
    show();
  });
  show();
}

function remembered() {
  try {
    return localStorage.getItem("theme");
  } catch {
    return null;
  }
}
