import { useState } from "react";

const ideas = ["Make it dark", "Add a second page", "Turn this into a shopping list"];

export function App() {
  const [count, setCount] = useState(0);
  return (
    <main>
      <p className="kicker">/workspace</p>
      <h1>This page is yours.</h1>
      <p>
        It runs inside your computer. Ask the agent to change it, or edit <code>src/App.jsx</code> yourself. You see each
        change here at once and can undo it.
      </p>
      <p>To start, tell the agent:</p>
      <ul>
        {ideas.map((idea) => (
          <li key={idea}>{idea}</li>
        ))}
      </ul>
      <button type="button" onClick={() => setCount(count + 1)}>
        Clicked {count} {count === 1 ? "time" : "times"}
      </button>
    </main>
  );
}
