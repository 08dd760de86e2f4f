/** CSS for the terminal styles that `berth` uses. */
const styles: Readonly<Record<string, string>> = {
  "1": "font-weight:bold;color:#fff",
  "2": "color:#8b949e",
  "31": "color:#ff7b72",
  "32": "color:#56d364",
  "33": "color:#e3b341",
  "36": "color:#39c5cf",
};

/** A page that shows a terminal's output as the terminal would, in a frame with a title. */
export function ansiPage(title: string, output: string): string {
  return `<!doctype html><meta charset="utf-8"><style>
body{margin:0;background:#0d1117}
figure{margin:0;display:inline-block;padding:26px 40px 32px;font:24px/1.5 "DejaVu Sans Mono",monospace;color:#c9d1d9}
figcaption{color:#8b949e;margin-bottom:14px}pre{margin:0;font:inherit}
</style><figure><figcaption>${escaped(title)}</figcaption><pre>${spans(output)}</pre></figure>`;
}

function spans(output: string): string {
  const [first = "", ...rest] = output.replaceAll("\r", "").trimEnd().split("\x1b[");
  const styled = rest.map((part) => {
    const [, code = "", text = ""] = /^([0-9;]*)m(.*)$/s.exec(part) ?? [];
    const style = styles[code];
    return style === undefined ? escaped(text) : `<span style="${style}">${escaped(text)}</span>`;
  });
  return escaped(first) + styled.join("");
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}
